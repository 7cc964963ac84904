/** The tools that servers list: use, findings, and what their definitions cost. */

import { amount, code, element, table } from "./dom.js";
import { isEmpty, matches, searchable, searchFor } from "./search.js";
import { counted, duration, number } from "./text.js";

const HINTS = {
  readOnlyHint: ["read-only", "may write"],
  destructiveHint: ["destructive", "not destructive"],
  idempotentHint: ["idempotent", "not idempotent"],
  openWorldHint: ["open world", "closed world"],
};

function hints(tool) {
  const words = Object.entries(tool.hints).map(([name, value]) => HINTS[name][value ? 0 : 1]);
  return words.length > 0 ? element("span", { class: "tags" }, ...words.map((each) => element("span", { class: "tag" }, each))) : null;
}

function nameCell(tool) {
  const problems = tool.problems.map((each) => element("span", { class: `badge badge-${each.what === "withheld" ? "error" : "warning"}`, title: each.rules.join(", ") }, each.what));
  const title = tool.title && tool.title !== tool.name ? element("span", { class: "tool-title" }, tool.title) : null;
  return element("div", { class: "tool" }, element("span", { class: "tool-name" }, element("button", { type: "button", class: "link", "data-row": true, title: "Search for this tool", on: { click: () => searchFor(`tool:"${tool.name}"`) } }, code(tool.name)), tool.server && element("span", { class: "quiet-text" }, ` ${tool.server}`), " ", ...problems), title, tool.description && element("span", { class: "tool-description" }, tool.description), hints(tool));
}

function totals(tools) {
  const servers = new Map();
  for (const tool of tools) servers.set(tool.server, [...(servers.get(tool.server) ?? []), tool]);
  return [...servers].map(([server, own]) => {
    const tokens = own.reduce((sum, each) => sum + each.tokens, 0);
    const without = own.filter((each) => !each.hasOutput).length;
    return element("li", null, server ? [element("strong", null, server), ": "] : null, `${counted(own.length, "tool")}, about ${counted(tokens, "token")} in every request of a client that sends them all; ${without === 0 ? "all have an outputSchema" : `${number(without)} without an outputSchema`}`);
  });
}

const COLUMNS = [["Tool"], ["Calls", { number: true }], ["Errors", { number: true }], ["Findings", { number: true }], ["p95", { number: true }], ["Tokens", { number: true }], ["Output schema"], ["Versions", { number: true }]];

/** Return the section. */
export function toolsSection(data) {
  const { tools } = data;
  if (tools.length === 0) {
    const text = "No list of tools is in the recording.";
    return { node: element("section", { id: "tools", "aria-labelledby": "tools-title" }, element("h2", { id: "tools-title" }, "Tools"), element("p", { class: "empty" }, text)), title: "Tools", count: 0 };
  }
  const cells = (tool) => [nameCell(tool), amount(tool.calls), amount(tool.errors), amount(tool.findings), tool.p95 === null ? "–" : duration(tool.p95), number(tool.tokens), tool.hasOutput ? "yes" : "no", number(tool.versions)];
  const shown = table("Tools", COLUMNS, tools.map((each) => ({ cells: cells(each) })));
  const lines = [...shown.querySelectorAll("tbody tr")];
  const index = tools.map((each) => searchable({ tool: each.name, server: each.server, rule: each.problems.map((problem) => problem.rules.join(" ")).join(" ") }, each.title, each.description));
  const partial = data.toolsArePartial ? element("p", { class: "remark" }, `The page has ${counted(tools.length, "tool")}; there are more.`) : null;
  const node = element(
    "section",
    { id: "tools", "aria-labelledby": "tools-title" },
    element("h2", { id: "tools-title" }, "Tools"),
    element("p", { class: "intro" }, `As the servers listed them last. Tokens are an estimate: the characters of a definition as compact JSON, divided by ${data.limits.charactersPerToken}. Errors are error answers and results with isError.`),
    element("ul", { class: "totals" }, ...totals(tools)),
    shown,
    partial,
  );
  return {
    node,
    title: "Tools",
    count: tools.length,
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
