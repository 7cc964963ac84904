/** The top of the report: the verdict, the figures that explain it, what could not be seen; and the list of files. */

import { amount, code, element, table } from "./dom.js";
import { filterRows, searchable } from "./search.js";
import { bytes, counted, duration, number, period } from "./text.js";

function tile(title, value, detail) {
  return element(
    "div",
    { class: "tile" },
    element("dt", null, title),
    element(
      "dd",
      null,
      element("span", { class: "value" }, value),
      detail && element("span", { class: "detail" }, detail),
    ),
  );
}

function findingsTile(totals) {
  const levels = ["error", "warning"].filter((level) => totals[level] > 0);
  const detail = levels.map((level) =>
    element("span", { class: `level tone-${level}` }, counted(totals[level], level)),
  );
  return tile("Findings", number(totals.findings), detail.length > 0 ? detail : "none");
}

function timeTile(data) {
  if (data.period === null) return tile("Time", "–", "the recording has no times");
  const [first, last] = data.period;
  const partial =
    data.timed < data.totals.messages
      ? `; ${counted(data.totals.messages - data.timed, "message")} without a time`
      : "";
  return tile("Time", duration((last - first) * 1000), period(first, last) + partial);
}

/** The first names of a list, with an ellipsis for the others. */
function firstOf(names, most) {
  return names.slice(0, most).join(", ") + (names.length > most ? " …" : "");
}

function conversationsTile(data) {
  const { conversations, conversationsAreExact } = data.totals;
  const { servers } = data;
  const detail = servers.length > 0 && `${counted(servers.length, "server")}: ${firstOf(servers, 3)}`;
  return tile("Conversations", `${conversationsAreExact ? "" : "about "}${number(conversations)}`, detail);
}

function revisionTile(data) {
  const [name, ...others] = data.revisions.map(([each]) => each);
  if (name === undefined) return tile("Revision", "–", "not known");
  return tile("Revision", name, others.length > 0 ? `also ${firstOf(others, 4)}` : "of MCP");
}

const NOT_OBSERVED = /^read as (.*?); not observed: (.*)$/;

/** Equal remarks of many files once, with the files. */
function remarksOf(data) {
  const found = new Map();
  for (const file of data.files)
    for (const remark of [...file.remarks, ...(file.error ? [file.error] : [])])
      found.set(remark, [...(found.get(remark) ?? []), file.name]);
  for (const remark of data.remarks) found.set(remark, []);
  return found;
}

function filesOf(names) {
  if (names.length === 0) return null;
  return [
    " ",
    element(
      "span",
      { class: "quiet-text" },
      names.length === 1 ? `(${names[0]})` : `(${counted(names.length, "file")})`,
    ),
  ];
}

function remarks(data) {
  const items = [...remarksOf(data)].map(([remark, names]) => {
    const hidden = NOT_OBSERVED.exec(remark);
    if (hidden === null) return element("li", null, remark, filesOf(names));
    const parts = hidden[2].split("; ").map((each) => element("li", null, each));
    return element(
      "li",
      null,
      `Read as ${hidden[1]}, which does not show the following`,
      filesOf(names),
      "; not observed is not passed:",
      element("ul", null, ...parts),
    );
  });
  const stale = data.stale.map((each) =>
    element("li", null, "No longer found, remove it from the baseline: ", code(each)),
  );
  if (items.length + stale.length === 0) return null;
  return element(
    "aside",
    { class: "notice", "aria-labelledby": "limits" },
    element("h2", { id: "limits" }, "What this report cannot show"),
    element("ul", null, ...items, ...stale),
  );
}

/** The names of up to three files; of more, their number, and the directory if they share one. */
function filesText(data) {
  const names = data.files.map((each) => each.name);
  const total = names.length + (data.moreFiles.files ?? 0);
  if (total <= 3) return names.join(", ");
  const folders = new Set(names.map((each) => each.slice(0, each.lastIndexOf("/") + 1)));
  const [folder] = folders;
  return folders.size === 1 && folder !== ""
    ? `${counted(total, "file")} in ${folder}`
    : `${names.slice(0, 2).join(", ")} and ${counted(total - 2, "more file")}`;
}

/** Return the first section. */
export function verdictSection(data) {
  const { verdict, totals } = data;
  return element(
    "section",
    { class: `verdict tone-${verdict.tone}`, "aria-labelledby": "verdict" },
    // A number and its noun stay on one line.
    element("h1", { id: "verdict" }, verdict.sentence.replace(/(\d) (?=[a-z])/g, "$1\u00a0")),
    element("p", { class: "files" }, filesText(data)),
    ...verdict.notes.map((each) => element("p", { class: "verdict-note" }, each)),
    element(
      "dl",
      { class: "tiles" },
      tile("Messages", number(totals.messages), `${bytes(totals.bytes)}; ${number(totals.ok)} ok`),
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
  ["Ok", { number: true }],
  ["Reported", { number: true }],
  ["Repaired", { number: true }],
  ["Blocked", { number: true }],
  ["Failed", { number: true }],
  ["Never answered", { number: true }],
  ["Revision"],
  ["Complete"],
];

/** Return the section with all files. */
export function filesSection(data) {
  const rows = data.files.map((file) => ({
    file,
    cells: [
      file.name,
      number(file.messages),
      number(file.ok),
      amount(file.reported),
      amount(file.repaired),
      amount(file.blocked),
      amount(file.failed),
      amount(file.unanswered),
      file.revision ?? "–",
      file.error ? "no: error" : file.isComplete ? "yes" : "no",
    ],
  }));
  const shown = table(
    "Files",
    COLUMNS,
    rows.map(({ cells }) => ({ cells })),
  );
  const lines = [...shown.querySelectorAll("tbody tr")];
  const index = rows.map(({ file }) =>
    searchable({}, file.name, ...file.remarks, file.error ?? "", file.revision ?? ""),
  );
  const more = data.moreFiles.files
    ? element(
        "p",
        { class: "remark" },
        `and ${counted(data.moreFiles.files, "more file")}, ${number(data.moreFiles.problems)} with problems`,
      )
    : null;
  const node = element(
    "section",
    { id: "files", "aria-labelledby": "files-title" },
    element("h2", { id: "files-title" }, "Files"),
    shown,
    more,
  );
  return {
    node,
    title: "Files",
    count: data.files.length + (data.moreFiles.files ?? 0),
    filter: (query) => filterRows(node, lines, index, query),
  };
}
