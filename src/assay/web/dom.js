/** Elements of a page. Text is always text: nothing here parses HTML, and hidden characters are made visible. */

import { number, visibleParts, visibleText } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";

/** Return the nodes that show *text*, with invisible characters as small labels such as U+202E. */
export function textNodes(text) {
  return visibleParts(String(text)).map((part) => {
    if (typeof part === "string") return document.createTextNode(part);
    const label = document.createElement("span");
    label.className = "hidden-character";
    label.textContent = part.code;
    return label;
  });
}

function append(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    if (child instanceof Node) parent.append(child);
    else parent.append(...textNodes(child));
  }
}

function assign(made, attributes) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    else if (name === "style") for (const [key, each] of Object.entries(value)) made.style.setProperty(key, each);
    else made.setAttribute(name, value === true ? "" : visibleText(String(value)));
  }
}

/**
 * Return a new element.
 *
 * *attributes*: `on` has event listeners, `style` has properties; null, undefined and false leave one out. *children*
 * are nodes, or anything else, which becomes text; arrays are flattened.
 */
export function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  assign(made, attributes);
  append(made, children);
  return made;
}

/** Return a new SVG element; as `element`. */
export function svg(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  assign(made, attributes);
  append(made, children);
  return made;
}

/** Put *children* in place of everything in *parent*. */
export function fill(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
  return parent;
}

/** Return a code span. */
export function code(text) {
  return element("code", null, text);
}

/** Return *text* that may break after a slash, an underscore, a hyphen or a dot: a path, or the name of a tool. */
export function breakable(text) {
  return String(text)
    .split(/(?<=[/_.-])(?=[^/_.-])/)
    .flatMap((part, at) => (at === 0 ? [part] : [element("wbr"), part]));
}

/** Return our own text with what is between backticks as code. */
export function prose(text) {
  return text.split(/`([^`]+)`/).map((part, at) => (at % 2 === 1 ? code(part) : part));
}

/** Return names with their values, in a list with the class *kind*; what has no value is left out. */
export function factList(kind, facts) {
  const kept = facts.filter(([, value]) => value !== null && value !== undefined && value !== "");
  const rows = kept.map(([name, value]) => element("div", null, element("dt", null, name), element("dd", null, value)));
  return element("dl", { class: kind }, ...rows);
}

/** Return a link that opens elsewhere, and gives the other page nothing; plain text without an address. */
export function link(address, ...children) {
  if (!address || !/^https?:\/\//.test(address)) return element("span", null, ...children);
  return element("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

/** Return a number for a cell of a table; a zero is quiet, so that the others stand out. */
export function amount(value) {
  return element("span", { class: value === 0 ? "zero" : null }, number(value));
}

/** Return a button for what a list does not show yet. */
export function moreButton(text, click) {
  return element("button", { type: "button", class: "more", on: { click } }, text);
}

/**
 * Return a table.
 *
 * *columns*: `[title, {number, class, about}]`; *rows*: arrays of cells, or `{cells, ...attributes}`.
 */
export function table(caption, columns, rows) {
  const kinds = columns.map(([, options]) => [options?.number && "number", options?.class].filter(Boolean).join(" "));
  const head = columns.map(([title, options], at) =>
    element("th", { scope: "col", class: kinds[at] || null, title: options?.about }, title),
  );
  const body = rows.map((row) => {
    const { cells, ...attributes } = Array.isArray(row) ? { cells: row } : row;
    const made = cells.map((cell, at) =>
      at === 0
        ? element("th", { scope: "row", class: kinds[at] || null }, cell)
        : element("td", { class: kinds[at] || null }, cell),
    );
    return element("tr", attributes, ...made);
  });
  return element(
    "div",
    { class: "table", tabindex: "0", role: "group", "aria-label": caption },
    element(
      "table",
      null,
      element("caption", { class: "unseen" }, caption),
      element("thead", null, element("tr", null, ...head)),
      element("tbody", null, ...body),
    ),
  );
}

/** Return buttons of which one is pressed. *choices*: `[value, label]`; *choose* gets the new value. */
export function choice(label, choices, chosen, choose) {
  const buttons = choices.map(([value, name]) =>
    element(
      "button",
      {
        type: "button",
        "aria-pressed": String(value === chosen),
        on: {
          click: () => {
            for (const each of buttons) each.setAttribute("aria-pressed", String(each === buttons[at(value)]));
            choose(value);
          },
        },
      },
      name,
    ),
  );
  const at = (value) => choices.findIndex(([each]) => each === value);
  return element("div", { class: "choice", role: "group", "aria-label": label }, ...buttons);
}
