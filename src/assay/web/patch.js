/** Brings a part of the page up to date in place: what has not changed keeps its focus, scrolling and selection. */

import { element } from "./dom.js";

function keyOf(node) {
  return node.dataset?.key;
}

function patchAttributes(old, made) {
  for (const { name } of [...old.attributes]) if (!made.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of made.attributes) {
    if (old.getAttribute(name) === value) continue;
    // The policy of the page forbids a style that comes as an attribute.
    if (name === "style") old.style.cssText = made.style.cssText;
    else old.setAttribute(name, value);
  }
}

function patchNode(old, made) {
  if (old.isEqualNode(made)) return;
  if (old.nodeName !== made.nodeName || keyOf(old) !== keyOf(made)) old.replaceWith(made);
  else if (old instanceof Element) {
    patchAttributes(old, made);
    patchChildren(old, made);
  } else old.data = made.data;
}

/**
 * Give *parent* the children of *made*.
 *
 * Children with the same `data-key` are the same, wherever they stand; others are the same at the same place. Their
 * listeners stay those of the first time, so a listener may depend on the key alone.
 */
function patchChildren(parent, made) {
  const kept = new Map([...parent.children].map((each) => [keyOf(each), each]));
  const children = [...made.childNodes];
  const keys = new Set(children.map(keyOf));
  for (const each of [...parent.children]) if (keyOf(each) !== undefined && !keys.has(keyOf(each))) each.remove();
  let at = parent.firstChild;
  for (const child of children) {
    const same = keyOf(child) === undefined ? at : kept.get(keyOf(child));
    if (same === null || same === undefined) parent.insertBefore(child, at);
    else {
      if (same === at) at = at.nextSibling;
      else parent.insertBefore(same, at);
      patchNode(same, child);
    }
  }
  while (at !== null) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** Give *parent* these *nodes* as its children. A node that is in its place already is not touched. */
export function arrange(parent, nodes) {
  const wanted = new Set(nodes);
  for (const each of [...parent.childNodes]) if (!wanted.has(each)) each.remove();
  let at = parent.firstChild;
  for (const node of nodes) {
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
}

/** Give *parent* new *children*, as `fill` does; what has not changed stays, as in `patchChildren`. */
export function refill(parent, ...children) {
  patchChildren(parent, element("div", null, ...children));
}
