/**
 * The libraries of the page, which index.html loads before its modules: Preact, its hooks, htm and signals.
 *
 * Text is always text: nothing parses HTML. Characters that hide or reorder text become visible in every element and
 * attribute, wherever they come from.
 */

import { isHiding, visibleParts, visibleText } from "./text.js";

const { options, h, render } = globalThis.preact;
const { useEffect, useLayoutEffect, useMemo, useRef, useState } = globalThis.preactHooks;
const { batch, effect, signal, untracked } = globalThis.preactSignals;

export const html = globalThis.htm.bind(h);

const MARK = { class: "hidden-character" };

function visibleChild(child) {
  if (Array.isArray(child)) return child.some(isText) ? child.map(visibleChild) : child;
  if (!isText(child)) return child;
  const parts = visibleParts(child);
  return parts.length === 1 && parts[0] === child
    ? child
    : parts.map((part) => (typeof part === "string" ? part : h("span", MARK, part.code)));
}

function isText(child) {
  return Array.isArray(child) ? child.some(isText) : typeof child === "string" && isHiding(child);
}

const before = options.vnode;
options.vnode = (node) => {
  const { props } = node;
  if (isText(props.children)) props.children = visibleChild(props.children);
  if (typeof node.type === "string")
    for (const name in props)
      if (name !== "children" && name !== "value" && isText(props[name])) props[name] = visibleText(props[name]);
  before?.(node);
};

export { batch, effect, render, signal, untracked, useEffect, useLayoutEffect, useMemo, useRef, useState };

/** Call *work* at most once in *milliseconds*; a call in between is made up for at the end. */
export function throttled(milliseconds, work) {
  let [last, timer] = [0, null];
  return () => {
    if (timer !== null) return;
    const wait = Math.max(0, last + milliseconds - performance.now());
    timer = setTimeout(() => {
      timer = null;
      last = performance.now();
      work();
    }, wait);
  };
}

/**
 * Return *items* in the order of *compare*, and a `ref` for the element that shows them.
 *
 * While the pointer is on that element, what it shows keeps its place, and what is new comes last: otherwise a click
 * may hit a row that has just moved there.
 */
export function useSteady(items, keyOf, compare) {
  const place = useRef(null);
  const order = useRef(new Map());
  const isHeld = order.current.size > 0 && place.current?.matches(":hover");
  const at = (item) => (isHeld ? (order.current.get(keyOf(item)) ?? order.current.size) : 0);
  const sorted = [...items].sort((one, other) => at(one) - at(other) || compare(one, other));
  order.current = new Map(sorted.map((each, index) => [keyOf(each), index]));
  return [sorted, place];
}
