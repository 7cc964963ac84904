/** Response times and sizes, by method and tool. */

import { histogram, miniHistogram } from "./charts.js";
import { amount, element, fill, table } from "./dom.js";
import { isEmpty, matches, searchable } from "./search.js";
import { bytes, counted, duration, number } from "./text.js";

function nameOf(method) {
  const from = method.party === "server" ? " (from the server)" : "";
  return `${method.method}${method.tool ? ` ${method.tool}` : ""}${from}`;
}

function nameCell(method, choose) {
  const server = method.server ? element("span", { class: "quiet-text" }, ` ${method.server}`) : null;
  return [element("button", { type: "button", class: "link", "data-row": true, on: { click: choose } }, nameOf(method)), server];
}

/** A table whose rows choose what the chart above it shows. */
function figureSection({ id, title, noun, intro, columns, methods, cells, chart, partial }) {
  if (methods.length === 0) return null;
  const place = element("div", { class: "chart-place" });
  const show = (method) => fill(place, chart(method));
  const shown = table(title, [["Method and tool"], ...columns], methods.map((each) => ({ cells: [nameCell(each, () => show(each)), ...cells(each)] })));
  const lines = [...shown.querySelectorAll("tbody tr")];
  const index = methods.map((each) => searchable({ method: each.method, tool: each.tool, server: each.server }, noun));
  const more = partial ? element("p", { class: "remark" }, "There are more methods or tools than the page has figures for.") : null;
  const node = element("section", { id, "aria-labelledby": `${id}-title` }, element("h2", { id: `${id}-title` }, title), element("p", { class: "intro" }, intro), place, shown, more);
  return {
    node,
    title,
    count: null,
    finish: () => show(methods[0]),
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

function latencySection(data) {
  const methods = data.methods.filter((each) => each.latency !== null);
  const node = figureSection({
    id: "latency",
    title: "Response times",
    noun: "latency response time",
    intro: `From a request to its answer, as the recorder saw them. Percentiles are within ${Math.round(1000 * data.limits.precision) / 10} %.`,
    methods,
    partial: data.methodsArePartial,
    columns: [["Distribution", { class: "mini-cell" }], ["Answers", { number: true }], ["p50", { number: true }], ["p95", { number: true }], ["p99", { number: true }], ["Slowest", { number: true }], ["Errors", { number: true }], ["Failed calls", { number: true }], ["Never answered", { number: true }]],
    cells: (each) => [miniHistogram(each.latency.buckets), number(each.latency.count), duration(each.latency.p50), duration(each.latency.p95), duration(each.latency.p99), duration(each.latency.most), amount(each.errors), amount(each.failed), amount(each.unanswered)],
    chart: (each) => histogram(`Response times of ${nameOf(each)}, ${counted(each.latency.count, "answer")}`, each.latency.buckets, duration, "answers"),
  });
  if (node !== null || data.totals.messages === 0) return node;
  const text = "The recording has no times, or no request with an answer: there are no response times.";
  return { node: element("section", { id: "latency", "aria-labelledby": "latency-title" }, element("h2", { id: "latency-title" }, "Response times"), element("p", { class: "empty" }, text)), title: "Response times", count: null };
}

function sizeCells(spread) {
  return spread === null ? ["–", "–", "–"] : [number(spread.count), bytes(spread.p50), bytes(spread.most)];
}

function largest(data) {
  const rows = data.largest.map((each) => [each.title, bytes(each.size), each.party, `${each.file}, line ${number(each.line)}`]);
  return element("div", null, element("h3", null, "The largest messages"), table("The largest messages", [["Message"], ["Size", { number: true }], ["Sender"], ["Place"]], rows));
}

function sizesSection(data) {
  const section = figureSection({
    id: "sizes",
    title: "Sizes",
    noun: "size bytes",
    intro: "Of requests and notifications, and of their answers. Medians have the same precision as response times.",
    methods: data.methods,
    partial: data.methodsArePartial,
    columns: [["Sent", { number: true }], ["Median", { number: true }], ["Largest", { number: true }], ["Answers", { number: true }], ["Median", { number: true }], ["Largest", { number: true }]],
    cells: (each) => [...sizeCells(each.sent), ...sizeCells(each.answers)],
    chart: (each) => {
      const spread = each.answers ?? each.sent;
      const what = each.answers ? "answers to" : "messages of";
      return histogram(`Sizes of ${what} ${nameOf(each)}`, spread.buckets, bytes, each.answers ? "answers" : "messages");
    },
  });
  section?.node.append(largest(data));
  return section;
}

/** Return the sections. */
export function figuresSections(data) {
  return [latencySection(data), sizesSection(data)].filter((each) => each !== null);
}
