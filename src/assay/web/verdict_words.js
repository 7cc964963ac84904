/** The words for what became of a message. The server decides the word; this module has its mark, meaning and colour. */

const WORDS = {
  blocked: ["✗", "blocked: not delivered", "blocked"],
  "would block": ["✗", "forwarded in audit mode; enforce mode would block it", "would-block"],
  failed: ["⚠", "failed: the server's own error", "failed"],
  repaired: ["↻", "repaired and forwarded", "repaired"],
  reported: ["!", "reported and forwarded", "reported"],
  ok: ["✓", "ok: valid", "ok"],
};

/** All words, the worst first. */
export const WORST_FIRST = Object.keys(WORDS);

/** Return the worst of *words*; "ok" without any. */
export function worstOf(words) {
  return WORST_FIRST.find((each) => words.includes(each)) ?? "ok";
}

/** Return the word to filter by: one word chooses what was blocked and what would be. */
export function filterWord(word) {
  return word === "would block" ? "blocked" : word;
}

/** Return the mark, the meaning and the tone of a word. */
export function verdictParts(word) {
  return WORDS[word] ?? ["·", word, "note"];
}
