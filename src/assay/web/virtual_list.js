/**
 * A list of any length that has only the rows in the page that can be seen.
 *
 * All rows have the same height. The list is a grid for screen readers: it has the focus itself, and names its active
 * row.
 */

import { element } from "./dom.js";

const BEYOND = 6;
/** Rows above and below the visible ones, so that a short scroll shows no gap. */

let lists = 0;

export class VirtualList {
  /**
   * *make* returns a new row, `{node, show(index)}`. *head* is the row of titles. *prepare* is called before rows are
   * shown. *left* is called when the user scrolls up, away from the end, or selects text; *resized*, when the list has
   * another size. *keyOf* returns the key of the row at an index, and *indexOf* the index of the first row whose key is
   * not less: rows may come and go above those that are seen. *open* gets the key of a row that was chosen.
   */
  constructor({ label, head, make, rowHeight, prepare, left, resized, keyOf, indexOf, open }) {
    this.make = make;
    this.rowHeight = rowHeight;
    this.prepare = prepare;
    this.left = left;
    this.keyOf = keyOf;
    this.indexOf = indexOf;
    this.open = open;
    this.length = 0;
    this.activeKey = null;
    this.pressedKey = null;
    this.held = null;
    this.pool = [];
    this.first = 0;
    this.isAsked = false;
    lists += 1;
    this.name = `list-${lists}`;
    this.body = element("div", { class: "virtual-rows", role: "rowgroup" });
    this.sizer = element("div", { class: "virtual-sizer", role: "presentation" }, this.body);
    this.node = element(
      "div",
      { class: "virtual", role: "grid", tabindex: "0", "aria-label": label, "aria-rowcount": "0" },
      element("div", { class: "virtual-head", role: "rowgroup" }, head),
      this.sizer,
    );
    this.node.addEventListener("scroll", () => this.scrolled(), { passive: true });
    // New rows may scroll to the end before the list has noticed that it was scrolled.
    this.node.addEventListener("wheel", ({ deltaY }) => deltaY < 0 && this.node.scrollTop > 0 && this.left(), {
      passive: true,
    });
    this.node.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("pointerdown", (event) => (this.pressedKey = this.rowAt(event)?.key ?? null));
    this.body.addEventListener("click", (event) => this.clicked(event));
    document.addEventListener("selectionchange", () => this.hasSelection && this.left());
    this.lastTop = 0;
    this.observer = new ResizeObserver(() => {
      resized();
      this.draw();
    });
    this.observer.observe(this.node);
  }

  get headHeight() {
    return this.node.firstChild.offsetHeight;
  }

  /** The height that rows can use. */
  get room() {
    return Math.max(0, this.node.clientHeight - this.headHeight);
  }

  get isAtEnd() {
    return this.node.scrollTop + this.node.clientHeight >= this.node.scrollHeight - this.rowHeight;
  }

  /** The index of the active row, or -1. */
  get active() {
    return this.activeKey === null ? -1 : Math.min(this.indexOf(this.activeKey), this.length - 1);
  }

  set active(index) {
    this.activeKey = index < 0 ? null : this.keyOf(index);
  }

  /** Whether text of a row is selected. */
  get hasSelection() {
    const selection = getSelection();
    return !selection.isCollapsed && this.body.contains(selection.anchorNode);
  }

  /** The index of the first row that is seen, with the row, if it was drawn. */
  top() {
    const index = Math.floor(this.node.scrollTop / this.rowHeight);
    const row = this.pool[index - this.first];
    return [index, row?.node.hidden ? undefined : row];
  }

  /** Remember the place of the list, for `restore`. */
  hold() {
    const [index, row] = this.top();
    if (row !== undefined) this.held = { key: row.key, offset: this.node.scrollTop - index * this.rowHeight };
  }

  /** Scroll to the place that was remembered. */
  restore() {
    if (this.held === null) return;
    this.node.scrollTop = this.indexOf(this.held.key) * this.rowHeight + this.held.offset;
    this.lastTop = this.node.scrollTop;
    this.held = null;
    this.ask();
  }

  /** Show a list of *length* rows. The first row that is seen stays in its place, if *stays*. */
  resize(length, stays = true) {
    const [before, seen] = this.top();
    const moved = stays && seen !== undefined && this.node.isConnected ? this.indexOf(seen.key) - before : 0;
    this.length = length;
    this.sizer.style.setProperty("height", `${length * this.rowHeight}px`);
    this.node.setAttribute("aria-rowcount", String(length + 1));
    if (moved !== 0) {
      this.node.scrollTop += moved * this.rowHeight;
      // This is not the user who scrolls, and the rows are not drawn yet.
      this.lastTop = this.node.scrollTop;
      this.first += moved;
    }
    this.ask();
  }

  setRowHeight(rowHeight) {
    this.rowHeight = rowHeight;
    this.resize(this.length);
  }

  toEnd() {
    this.node.scrollTop = this.node.scrollHeight;
    this.ask();
  }

  /** Draw with the next frame, once. */
  ask() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.draw();
    });
  }

  scrolled() {
    const { scrollTop } = this.node;
    // A list that becomes smaller does not show its end either, but nothing was scrolled.
    if (scrollTop < this.lastTop && !this.isAtEnd) this.left();
    this.lastTop = scrollTop;
    this.ask();
  }

  /** The range of rows that can be seen. */
  seen() {
    const first = Math.max(0, Math.floor(this.node.scrollTop / this.rowHeight));
    return [first, Math.min(this.length, Math.ceil((this.node.scrollTop + this.room) / this.rowHeight) + 1)];
  }

  /** The range of rows that are in the page. */
  drawn() {
    const [from, to] = this.seen();
    return [Math.max(0, from - BEYOND), Math.min(this.length, to + BEYOND)];
  }

  draw() {
    if (!this.node.isConnected) return;
    const [first, end] = this.drawn();
    this.first = first;
    const count = Math.max(0, end - first);
    this.drawnActive = this.activeKey === null ? null : this.keyOf(this.active);
    this.prepare();
    while (this.pool.length < count) this.grow();
    this.body.style.setProperty("transform", `translateY(${this.first * this.rowHeight}px)`);
    for (const [at, row] of this.pool.entries()) {
      row.node.hidden = at >= count;
      if (at < count) this.show(row, this.first + at);
      else row.node.removeAttribute("aria-selected");
    }
    this.point();
  }

  grow() {
    const row = this.make();
    row.node.id = `${this.name}-${this.pool.length}`;
    this.pool.push(row);
    this.body.append(row.node);
  }

  show(row, index) {
    row.key = this.keyOf(index);
    row.node.setAttribute("aria-rowindex", String(index + 2));
    row.node.setAttribute("aria-selected", String(row.key === this.drawnActive));
    row.show(index);
  }

  /** Name the active row for screen readers. */
  point() {
    const { active } = this;
    const at = active - this.first;
    if (active >= 0 && at >= 0 && at < this.pool.length && !this.pool[at].node.hidden)
      this.node.setAttribute("aria-activedescendant", this.pool[at].node.id);
    else this.node.removeAttribute("aria-activedescendant");
  }

  rowAt(event) {
    return this.pool.find((each) => each.node.contains(event.target));
  }

  /** Open the row that was pressed: another may have come under the pointer since. The end of a selection is no click. */
  clicked(event) {
    const key = this.pressedKey ?? this.rowAt(event)?.key;
    this.pressedKey = null;
    if (key === undefined || this.hasSelection) return;
    this.activeKey = key;
    this.open(key);
  }

  /** Make a row active, and scroll just as far as needed to see it. */
  activate(index) {
    if (this.length === 0) return;
    this.active = Math.min(this.length - 1, Math.max(0, index));
    const top = this.active * this.rowHeight;
    const { scrollTop } = this.node;
    if (top < scrollTop) {
      this.left();
      this.node.scrollTop = top;
    } else if (top + this.rowHeight > scrollTop + this.room) this.node.scrollTop = top + this.rowHeight - this.room;
    this.ask();
  }

  /** Move the active row; from nowhere, to the last row that can be seen. */
  move(step) {
    const [from, to] = this.seen();
    this.activate(this.active >= 0 ? this.active + step : step > 0 ? from : to - 2);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.node) return;
    const page = Math.max(1, Math.floor(this.room / this.rowHeight) - 1);
    const moves = {
      ArrowDown: () => this.move(1),
      ArrowUp: () => this.move(-1),
      j: () => this.move(1),
      k: () => this.move(-1),
      PageDown: () => this.move(page),
      PageUp: () => this.move(-page),
      Home: () => this.activate(0),
      End: () => this.activate(this.length - 1),
      Enter: () => this.active >= 0 && this.open(this.keyOf(this.active)),
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    event.stopPropagation();
    moves[event.key]();
  }

  close() {
    this.observer.disconnect();
  }
}
