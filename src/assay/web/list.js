/**
 * A list of any length that has only the rows in the page that can be seen.
 *
 * All rows have the same height. The list is a grid for screen readers: it has the focus itself, and names its active
 * row.
 */

import { html, useEffect, useLayoutEffect, useRef, useState } from "./view.js";

const BEYOND = 6;
/** Rows above and below the visible ones, so that a short scroll shows no gap. */

function selected(body) {
  const selection = getSelection();
  return !selection.isCollapsed && body?.contains(selection.anchorNode);
}

/** What a list remembers between two drawings; its owner keeps it, so that a list finds its place again. */
export class ListPlace {
  constructor() {
    /** The key of the first row that is seen, and how much of it is above the edge; null at first. */
    this.top = null;
    this.pressed = null;
    this.lastTop = 0;
  }
}

/**
 * The list.
 *
 * *keyOf* returns the key of the row at an index, and *indexOf* the index of the first row whose key is not less: rows
 * may come and go above those that are seen. *Row* draws the row at an index. *active* is the key of the active row, or
 * null; it is brought into sight when it changes, as soon as *isRead*: all rows are known. With *follows* the end is shown; *left* is called when the user scrolls up from it, or selects text. *own* is a
 * ref that gets the node of the list, and `move(step)`.
 */
export function VirtualList({ label, head, length, rowHeight, keyOf, indexOf, Row, active, isRead, choose, open, follows, left, place, own }) {
  const node = useRef(null);
  const body = useRef(null);
  const [, draw] = useState(0);
  const asked = useRef(0);
  const redraw = () => {
    if (asked.current !== 0) return;
    asked.current = requestAnimationFrame(() => {
      asked.current = 0;
      draw((count) => count + 1);
    });
  };

  const scrollTo = (top) => {
    node.current.scrollTop = top;
    // This is not the user who scrolls.
    place.lastTop = node.current.scrollTop;
  };
  const room = () => Math.max(0, node.current.clientHeight - node.current.firstChild.offsetHeight);
  const isAtEnd = () => node.current.scrollTop + node.current.clientHeight >= node.current.scrollHeight - rowHeight;
  const remember = () => {
    const first = Math.floor(node.current.scrollTop / rowHeight);
    if (first < length) place.top = { key: keyOf(first), offset: node.current.scrollTop - first * rowHeight };
  };

  // Before the browser draws: the end, or the row that was first before, wherever it is now. A list that the user
  // scrolls meanwhile is moved by as much as its rows were.
  const isNew = useRef(true);
  useLayoutEffect(() => {
    const top = place.top === null ? 0 : indexOf(place.top.key) * rowHeight + place.top.offset;
    const shift = top - place.lastTop;
    if (follows) scrollTo(node.current.scrollHeight);
    else if (isNew.current) scrollTo(top);
    else if (Math.abs(shift) >= 1) scrollTo(node.current.scrollTop + shift);
    isNew.current = false;
  });
  // An address may name a row anywhere.
  useLayoutEffect(() => {
    const top = active === null ? -1 : indexOf(active) * rowHeight;
    const { scrollTop } = node.current;
    if (top < 0 || follows || (top >= scrollTop && top + rowHeight <= scrollTop + room())) return;
    scrollTo(top - room() / 2);
    remember();
    redraw();
  }, [active, isRead]);
  useEffect(() => {
    const observer = new ResizeObserver(redraw);
    observer.observe(node.current);
    const chosen = () => selected(body.current) && left();
    document.addEventListener("selectionchange", chosen);
    draw(1);
    return () => {
      observer.disconnect();
      cancelAnimationFrame(asked.current);
      document.removeEventListener("selectionchange", chosen);
    };
  }, []);

  const seenFrom = () => {
    if (node.current === null) return [0, 0];
    const first = follows
      ? Math.max(0, length - Math.ceil(room() / rowHeight) - 1)
      : place.top !== null
        ? indexOf(place.top.key)
        : 0;
    return [Math.min(first, length), Math.min(length, first + Math.ceil(room() / rowHeight) + 1)];
  };
  const [seen, end] = seenFrom();
  const [from, to] = [Math.max(0, seen - BEYOND), Math.min(length, end + BEYOND)];
  const at = active === null ? -1 : indexOf(active);
  const isActive = (index) => index === at && keyOf(index) === active;

  const scrolled = () => {
    // The event comes later than the scroll: the screen may have been left.
    if (node.current === null) return;
    const { scrollTop } = node.current;
    if (scrollTop < place.lastTop && !isAtEnd()) left();
    place.lastTop = scrollTop;
    remember();
    redraw();
  };
  const activate = (index) => {
    if (length === 0) return;
    const next = Math.min(length - 1, Math.max(0, index));
    const top = next * rowHeight;
    const { scrollTop } = node.current;
    if (top < scrollTop) {
      left();
      scrollTo(top);
    } else if (top + rowHeight > scrollTop + room()) scrollTo(top + rowHeight - room());
    remember();
    choose(keyOf(next));
    redraw();
  };
  const move = (by) => {
    const first = Math.floor(node.current.scrollTop / rowHeight);
    const last = Math.min(length, first + Math.floor(room() / rowHeight)) - 1;
    activate(at >= 0 ? Math.min(at, length - 1) + by : by > 0 ? first : last);
  };
  own.current = { node: node.current, move, hold: remember };

  const pressed = (event) => {
    place.pressed = event.target.closest("[data-seq]")?.dataset.seq ?? null;
  };
  // Open the row that was pressed: another may have come under the pointer since. The end of a selection is no click.
  const clicked = (event) => {
    const key = place.pressed ?? event.target.closest("[data-seq]")?.dataset.seq;
    place.pressed = null;
    if (key && !selected(body.current)) open(Number(key));
  };
  const key = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== node.current) return;
    const page = Math.max(1, Math.floor(room() / rowHeight) - 1);
    const moves = {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      j: () => move(1),
      k: () => move(-1),
      PageDown: () => move(page),
      PageUp: () => move(-page),
      Home: () => activate(0),
      End: () => activate(length - 1),
      Enter: () => active !== null && open(active),
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    event.stopPropagation();
    moves[event.key]();
  };

  const indices = Array.from({ length: to - from }, (_, index) => from + index);
  return html`<div class="virtual" role="grid" tabindex="0" aria-label=${label} aria-rowcount=${length + 1} ref=${node}
    aria-activedescendant=${at >= from && at < to && isActive(at) ? `row-${active}` : null}
    onScroll=${scrolled} onKeyDown=${key}
    onWheel=${(event) => event.deltaY < 0 && node.current.scrollTop > 0 && left()}>
    <div class="virtual-head" role="rowgroup">${head}</div>
    <div class="virtual-sizer" role="presentation" style=${{ height: `${length * rowHeight}px` }}>
      <div class="virtual-rows" role="rowgroup" ref=${body} style=${{ transform: `translateY(${from * rowHeight}px)` }}
        onPointerDown=${pressed} onClick=${clicked}>
        ${indices.map((index) => html`<${Row} key=${keyOf(index)} index=${index} isActive=${isActive(index)} />`)}
      </div>
    </div>
  </div>`;
}
