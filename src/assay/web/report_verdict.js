/** The top of the report: the verdict, the figures that explain it, what could not be seen; and the list of files. */

import { amount, code, element, table } from "./dom.js";
import { isEmpty, matches, searchable } from "./search.js";
import { bytes, counted, duration, number, period } from "./text.js";

function tile(title, value, detail) {
  return element("div", { class: "tile" }, element("dt", null, title), element("dd", null, element("span", { class: "value" }, value), detail && element("span", { class: "detail" }, detail)));
}

function findingsTile(totals) {
  const levels = ["error", "warning", "note"].filter((level) => totals[level] > 0);
  const detail = levels.map((level) => element("span", { class: `level tone-${level}` }, counted(totals[level], level)));
  return tile("Findings", number(totals.findings), detail.length > 0 ? detail : "none");
}

function timeTile(data) {
  if (data.period === null) return tile("Time", "–", "the recording has no times");
  const [first, last] = data.period;
  const partial = data.timed < data.totals.messages ? `; ${counted(data.totals.messages - data.timed, "message")} without a time` : "";
  return tile("Time", duration((last - first) * 1000), period(first, last) + partial);
}

function conversationsTile(data) {
  const { conversations, conversationsAreExact } = data.totals;
  const servers = data.servers.length > 0 ? `${data.servers.length === 1 ? "server" : `${data.servers.length} servers:`} ${data.servers.slice(0, 3).join(", ")}${data.servers.length > 3 ? " …" : ""}` : null;
  return tile("Conversations", `${conversationsAreExact ? "" : "about "}${number(conversations)}`, servers);
}

function revisionTile(data) {
  const names = data.revisions.map(([name]) => name);
  if (names.length === 0) return tile("Revision", "–", "not known");
  const others = names.length > 1 ? `also ${names.slice(1, 4).join(", ")}${names.length > 4 ? " …" : ""}` : "of MCP";
  return tile("Revision", names[0], others);
}

const NOT_OBSERVED = /^read as (.*?); not observed: (.*)$/;

/** Equal remarks of many files once, with the files. */
function remarksOf(data) {
  const found = new Map();
  for (const file of data.files)
    for (const remark of [...file.remarks, ...(file.error ? [file.error] : [])]) found.set(remark, [...(found.get(remark) ?? []), file.name]);
  for (const remark of data.remarks) found.set(remark, []);
  return found;
}

function filesOf(names) {
  if (names.length === 0) return null;
  return [" ", element("span", { class: "quiet-text" }, names.length === 1 ? `(${names[0]})` : `(${counted(names.length, "file")})`)];
}

function remarks(data) {
  const items = [...remarksOf(data)].map(([remark, names]) => {
    const hidden = NOT_OBSERVED.exec(remark);
    if (hidden === null) return element("li", null, remark, filesOf(names));
    const parts = hidden[2].split("; ").map((each) => element("li", null, each));
    return element("li", null, `Read as ${hidden[1]}, which does not show the following`, filesOf(names), "; not observed is not passed:", element("ul", null, ...parts));
  });
  const stale = data.stale.map((each) => element("li", null, "No longer found, remove it from the baseline: ", code(each)));
  if (items.length + stale.length === 0) return null;
  return element("aside", { class: "notice", "aria-labelledby": "limits" }, element("h2", { id: "limits" }, "What this report cannot show"), element("ul", null, ...items, ...stale));
}

/** Return the first section. */
export function verdictSection(data) {
  const { verdict, totals } = data;
  const names = data.files.map((each) => each.name);
  const more = names.length - 3 + (data.moreFiles.files ?? 0);
  const files = `${names.slice(0, 3).join(", ")}${more > 0 ? ` and ${counted(more, "more file")}` : ""}`;
  return element(
    "section",
    { class: `verdict tone-${verdict.tone}`, "aria-labelledby": "verdict" },
    element("h1", { id: "verdict" }, verdict.sentence),
    element("p", { class: "files" }, files),
    ...verdict.notes.map((each) => element("p", { class: "verdict-note" }, each)),
    element(
      "dl",
      { class: "tiles" },
      tile("Messages", number(totals.messages), `${bytes(totals.bytes)}; ${number(totals.good)} valid`),
      findingsTile(totals),
      conversationsTile(data),
      timeTile(data),
      revisionTile(data),
    ),
    remarks(data),
  );
}

const COLUMNS = [
  ["File"],
  ["Messages", { number: true }],
  ["Valid", { number: true }],
  ["Refused", { number: true }],
  ["Quarantined", { number: true }],
  ["Reported", { number: true }],
  ["Never answered", { number: true }],
  ["Revision"],
  ["Complete"],
];

/** Return the section with all files. */
export function filesSection(data) {
  const rows = data.files.map((file) => ({
    file,
    cells: [file.name, number(file.messages), number(file.good), amount(file.refused), amount(file.quarantined), amount(file.reported), amount(file.unanswered), file.revision ?? "–", file.error ? "no: error" : file.isComplete ? "yes" : "no"],
  }));
  const shown = table("Files", COLUMNS, rows.map(({ cells }) => ({ cells })));
  const lines = [...shown.querySelectorAll("tbody tr")];
  const index = rows.map(({ file }) => searchable({}, file.name, ...file.remarks, file.error ?? "", file.revision ?? ""));
  const more = data.moreFiles.files ? element("p", { class: "remark" }, `and ${counted(data.moreFiles.files, "more file")}, ${number(data.moreFiles.problems)} with problems`) : null;
  const node = element("section", { id: "files", "aria-labelledby": "files-title" }, element("h2", { id: "files-title" }, "Files"), shown, more);
  return {
    node,
    title: "Files",
    count: data.files.length + (data.moreFiles.files ?? 0),
    filter(query) {
      let count = 0;
      for (const [at, line] of lines.entries()) {
        line.hidden = !matches(query, index[at]);
        count += line.hidden ? 0 : 1;
      }
      node.hidden = count === 0 && !isEmpty(query);
      return count;
    },
  };
}
