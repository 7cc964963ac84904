/** The difference of two JSON texts, line by line. */

import { html } from "./view.js";

const MOST_LINES = 1500;
/** Lines between the common start and end that are compared with each other: the work grows with their square. */

/** Return *text* with one member in each line; as it is, if it is not JSON. */
function laidOut(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2).split("\n");
  } catch {
    return text.split("\n");
  }
}

/** The lengths of the longest common parts of the rests of two lists of lines. */
function commonLengths(before, after) {
  const width = after.length + 1;
  const lengths = new Uint16Array((before.length + 1) * width);
  for (let one = before.length - 1; one >= 0; one -= 1) {
    for (let other = after.length - 1; other >= 0; other -= 1) {
      const at = one * width + other;
      lengths[at] =
        before[one] === after[other] ? lengths[at + width + 1] + 1 : Math.max(lengths[at + width], lengths[at + 1]);
    }
  }
  return lengths;
}

function middle(before, after) {
  if (before.length > MOST_LINES || after.length > MOST_LINES) {
    return [...before.map((line) => ["-", line]), ...after.map((line) => ["+", line])];
  }
  const lengths = commonLengths(before, after);
  const width = after.length + 1;
  const lines = [];
  let [one, other] = [0, 0];
  while (one < before.length || other < after.length) {
    const at = one * width + other;
    if (one < before.length && other < after.length && before[one] === after[other]) {
      lines.push([" ", before[one]]);
      one += 1;
      other += 1;
    } else if (other >= after.length || (one < before.length && lengths[at + width] >= lengths[at + 1])) {
      lines.push(["-", before[one]]);
      one += 1;
    } else {
      lines.push(["+", after[other]]);
      other += 1;
    }
  }
  return lines;
}

/** Return the lines of both texts: `[sign, line]` with " " for common ones, "-" for removed and "+" for added ones. */
export function diffLines(before, after) {
  const [one, other] = [laidOut(before), laidOut(after)];
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < one.length - start && end < other.length - start && one.at(-1 - end) === other.at(-1 - end)) end += 1;
  const same = (lines) => lines.map((line) => [" ", line]);
  return [
    ...same(one.slice(0, start)),
    ...middle(one.slice(start, one.length - end), other.slice(start, other.length - end)),
    ...same(one.slice(one.length - end)),
  ];
}

const NEAR = 3;
const KINDS = { "-": "removed", "+": "added" };

/** The difference as a view: changed lines, with some lines around them. */
export function TextDiff({ before, after }) {
  const lines = diffLines(before, after);
  if (lines.every(([sign]) => sign === " "))
    return html`<p class="quiet-text">The places of the changes are recorded, not their values: both texts look the same.</p>`;
  const isNear = lines.map((_, at) => lines.slice(Math.max(0, at - NEAR), at + NEAR + 1).some(([sign]) => sign !== " "));
  return html`<div class="diff" tabindex="0" role="group" aria-label="What the guard changed">
    ${lines.map(([sign, line], at) => {
      if (!isNear[at]) return at > 0 && isNear[at - 1] && html`<div class="diff-gap">…</div>`;
      const kind = KINDS[sign];
      return html`<div class="diff-line diff-${kind ?? "same"}">
        ${kind && html`<span class="unseen">${kind}: </span>`}<span class="sign" aria-hidden="true">${sign}</span>${line}
      </div>`;
    })}
  </div>`;
}
