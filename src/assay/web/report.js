/** The report of `assay check` as a page: reads the data in the page, and shows it. */

import { redrawCharts } from "./charts.js";
import { element, fill } from "./dom.js";
import { conversationsSection } from "./report_conversations.js";
import { figuresSections } from "./report_figures.js";
import { findingsSection } from "./report_findings.js";
import { filesSection, verdictSection } from "./report_verdict.js";
import { toolsSection } from "./report_tools.js";
import { isEmpty, listenToKeys, onSearch, parseQuery } from "./search.js";
import { number } from "./text.js";
import { switchTheme } from "./theme.js";

/** Build *work* after the first screen is painted: the verdict and the findings must not wait for it. */
function later(work) {
  requestAnimationFrame(() => setTimeout(work, 0));
}

function header(search, themeButton, found) {
  return element(
    "header",
    { class: "top" },
    element("a", { class: "skip", href: "#findings" }, "Skip to the findings"),
    element("span", { class: "brand" }, "assay ", element("span", null, "report")),
    element("div", { class: "search", role: "search" }, search, found),
    themeButton,
  );
}

function navigation(sections) {
  const links = sections.filter((each) => each.node).map((each) => element("a", { href: `#${each.node.id}` }, each.title, each.count !== null && element("span", { class: "count" }, number(each.count))));
  return element("nav", { class: "sections", "aria-label": "Sections" }, ...links);
}

function footer(data) {
  const made = data.generator.made ? `, ${data.generator.made}` : "";
  return element(
    "footer",
    null,
    element("p", null, `Made by assay ${data.generator.version}${made}. Secrets are masked. The page is complete: it loads nothing from the network.`),
    element("p", { class: "keys" }, element("kbd", null, "/"), " search  ", element("kbd", null, "Esc"), " clear  ", element("kbd", null, "j"), " ", element("kbd", null, "k"), " move  ", element("kbd", null, "Enter"), " open"),
  );
}

/** Open the finding or the conversation that the address names; true if there is one. */
function followLink(sections) {
  const name = decodeURIComponent(location.hash.slice(1));
  return name !== "" && sections.some((each) => each.open?.(name) === true);
}

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const search = element("input", {
    type: "search",
    id: "search",
    placeholder: "Search: words, rule: tool: method: server: level:",
    "aria-label": "Search the report; words are combined with and",
    autocomplete: "off",
    spellcheck: "false",
  });
  const found = element("output", { class: "found", for: "search", "aria-live": "polite" });
  const themeButton = element("button", { type: "button", class: "theme" });

  const findings = findingsSection(data);
  const conversations = conversationsSection(data, findings.open);
  const sections = [findings, conversations, ...figuresSections(data), toolsSection(data), filesSection(data)];

  const filter = () => {
    const query = parseQuery(search.value);
    const total = sections.reduce((sum, each) => sum + (each.filter?.(query) ?? 0), 0);
    fill(found, isEmpty(query) ? "" : `${number(total)} found`);
    document.body.classList.toggle("searching", !isEmpty(query));
  };
  search.addEventListener("input", filter);
  listenToKeys(search, () => {
    search.value = "";
    filter();
  });

  onSearch((text) => {
    search.value = text;
    filter();
    findings.node.scrollIntoView({ block: "start" });
  });

  const main = element("main", null, verdictSection(data), navigation(sections), findings.node);
  document.body.append(header(search, themeButton, found), main, footer(data));
  switchTheme(themeButton, redrawCharts);
  later(() => {
    main.append(...sections.map((each) => each.node).filter((node) => node && node !== findings.node));
    for (const each of sections) each.finish?.();
    followLink(sections);
    document.body.dataset.ready = "true";
  });
  addEventListener("hashchange", () => followLink(sections));

  const print = () => {
    for (const each of sections) each.expand?.();
  };
  addEventListener("beforeprint", print);
  matchMedia("print").addEventListener("change", (event) => event.matches && print());
}

start();
