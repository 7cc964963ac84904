/** The tools that servers list: use, findings, and what their definitions cost. */

import { amount, code, element, fill, moreButton, table } from "./dom.js";
import { filterRows, NOTHING, searchable, searchFor } from "./search.js";
import { counted, duration, number } from "./text.js";

const HINTS = {
  readOnlyHint: ["read-only", "may write"],
  destructiveHint: ["destructive", "not destructive"],
  idempotentHint: ["idempotent", "not idempotent"],
  openWorldHint: ["open world", "closed world"],
};

function hints(tool) {
  const words = Object.entries(tool.hints).map(([name, value]) => HINTS[name][value ? 0 : 1]);
  return words.length > 0
    ? element("span", { class: "tags" }, ...words.map((each) => element("span", { class: "tag" }, each)))
    : null;
}

function nameCell(tool) {
  const problems = tool.problems.map((each) =>
    element(
      "span",
      { class: `badge badge-${each.what === "quarantined" ? "error" : "warning"}`, title: each.rules.join(", ") },
      each.what,
    ),
  );
  const title = tool.title && tool.title !== tool.name ? element("span", { class: "tool-title" }, tool.title) : null;
  return element(
    "div",
    { class: "tool" },
    element(
      "span",
      { class: "tool-name" },
      element(
        "button",
        {
          type: "button",
          class: "link",
          "data-row": true,
          title: "Search for this tool",
          on: { click: () => searchFor(`tool:"${tool.name}"`) },
        },
        code(tool.name),
      ),
      tool.server && element("span", { class: "quiet-text" }, ` ${tool.server}`),
      " ",
      ...problems,
    ),
    title,
    tool.description && element("span", { class: "tool-description" }, tool.description),
    hints(tool),
  );
}

function withoutOutput(tools) {
  const without = tools.filter((each) => !each.hasOutput).length;
  return without === 0 ? "all have an outputSchema" : `${number(without)} without an outputSchema`;
}

/** Recordings without names of servers may have many of them: their tools do not add up. */
function totalOfLists(data) {
  const lists = `${counted(data.tools.length, "tool")} in ${counted(data.lists.count, "list")}`;
  const cost = `the largest list costs about ${counted(data.lists.tokens, "token")} in every request that has it`;
  return element("li", null, `${lists}; ${cost}; ${withoutOutput(data.tools)}`);
}

function totalOfServer(server, tools) {
  const tokens = tools.reduce((sum, each) => sum + each.tokens, 0);
  const cost = `${counted(tools.length, "tool")}, about ${counted(tokens, "token")} in every request that has them`;
  return element("li", null, server && [element("strong", null, server), ": "], `${cost}; ${withoutOutput(tools)}`);
}

function totals(data) {
  if (data.servers.length === 0 && data.files.length > 1) return [totalOfLists(data)];
  const servers = new Map();
  for (const tool of data.tools) servers.set(tool.server, [...(servers.get(tool.server) ?? []), tool]);
  return [...servers].map(([server, tools]) => totalOfServer(server, tools));
}

const PAGE = 40;
/** Tools that are shown at first. */

const COLUMNS = [
  ["Tool"],
  ["Calls", { number: true }],
  ["Errors", { number: true }],
  ["Findings", { number: true }],
  ["p95", { number: true }],
  ["Tokens", { number: true }],
  ["Output schema"],
  ["Versions", { number: true }],
];

function cells(tool) {
  return [
    nameCell(tool),
    amount(tool.calls),
    amount(tool.errors),
    amount(tool.findings),
    tool.p95 === null ? "–" : duration(tool.p95),
    number(tool.tokens),
    tool.hasOutput ? "yes" : "no",
    number(tool.versions),
  ];
}

function entryOf(tool) {
  const rules = tool.problems.flatMap((each) => each.rules).join(" ");
  return searchable({ tool: tool.name, server: tool.server, rule: rules }, tool.title, tool.description);
}

function section(...children) {
  return element(
    "section",
    { id: "tools", "aria-labelledby": "tools-title" },
    element("h2", { id: "tools-title" }, "Tools"),
    ...children,
  );
}

/** The table of tools: the first ones, and the others on demand. */
class Tools {
  constructor(data) {
    const { tools } = data;
    this.title = "Tools";
    this.count = tools.length;
    this.most = PAGE;
    this.query = NOTHING;
    const shown = table(
      "Tools",
      COLUMNS,
      tools.map((each) => ({ cells: cells(each) })),
    );
    this.lines = [...shown.querySelectorAll("tbody tr")];
    this.index = tools.map(entryOf);
    this.more = moreButton("", () => {
      this.most = Infinity;
      this.render();
    });
    const estimate = `the characters of a definition as compact JSON, divided by ${data.limits.charactersPerToken}`;
    const intro = `As the servers listed them last. Tokens are an estimate: ${estimate}. `;
    this.node = section(
      element("p", { class: "intro" }, intro, "Errors are error answers and results with isError."),
      element("ul", { class: "totals" }, ...totals(data)),
      shown,
      this.more,
      data.toolsArePartial &&
        element("p", { class: "remark" }, `The page has ${counted(tools.length, "tool")}; there are more.`),
    );
    this.render();
  }

  render() {
    const count = filterRows(this.node, this.lines, this.index, this.query);
    const found = this.lines.filter((each) => !each.hidden);
    for (const each of found.slice(this.most)) each.hidden = true;
    this.more.hidden = count <= this.most;
    fill(this.more, `Show all ${number(count)}`);
    return count;
  }

  filter(query) {
    this.query = query;
    return this.render();
  }
}

/** Return the section. */
export function toolsSection(data) {
  if (data.tools.length > 0) return new Tools(data);
  const node = section(element("p", { class: "empty" }, "No list of tools is in the recording."));
  return { node, title: "Tools", count: 0 };
}
