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
   * shown. *left* is called when the user scrolls up, away from the end; *resized*, when the list has another size.
   * *open* gets the index of a row that was chosen.
   */
  constructor({ label, head, make, rowHeight, prepare, left, resized, open }) {
    this.make = make;
    this.rowHeight = rowHeight;
    this.prepare = prepare;
    this.left = left;
    this.open = open;
    this.length = 0;
    this.active = -1;
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
    this.node.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.top = 0;
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

  /** Show a list of *length* rows; *dropped* rows are gone from its start, and what is seen stays in its place. */
  resize(length, dropped = 0) {
    this.length = length;
    this.sizer.style.setProperty("height", `${length * this.rowHeight}px`);
    this.node.setAttribute("aria-rowcount", String(length + 1));
    if (dropped > 0) {
      this.node.scrollTop = Math.max(0, this.node.scrollTop - dropped * this.rowHeight);
      if (this.active >= 0) this.active = Math.max(0, this.active - dropped);
    }
    this.active = Math.min(this.active, length - 1);
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
    if (scrollTop < this.top && !this.isAtEnd) this.left();
    this.top = scrollTop;
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
    this.prepare();
    while (this.pool.length < count) this.grow();
    this.body.style.setProperty("transform", `translateY(${this.first * this.rowHeight}px)`);
    for (const [at, row] of this.pool.entries()) {
      row.node.hidden = at >= count;
      if (at < count) this.show(row, this.first + at);
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
    row.index = index;
    row.node.setAttribute("aria-rowindex", String(index + 2));
    row.node.setAttribute("aria-selected", String(index === this.active));
    row.show(index);
  }

  /** Name the active row for screen readers. */
  point() {
    const at = this.active - this.first;
    if (this.active >= 0 && at >= 0 && at < this.pool.length && !this.pool[at].node.hidden)
      this.node.setAttribute("aria-activedescendant", this.pool[at].node.id);
    else this.node.removeAttribute("aria-activedescendant");
  }

  clicked(event) {
    const row = this.pool.find((each) => each.node.contains(event.target));
    if (row === undefined) return;
    this.active = row.index;
    this.open(row.index);
  }

  /** Make a row active, and scroll just as far as needed to see it. */
  activate(index) {
    if (this.length === 0) return;
    this.active = Math.min(this.length - 1, Math.max(0, index));
    const top = this.active * this.rowHeight;
    const { scrollTop } = this.node;
    if (top < scrollTop) this.node.scrollTop = top;
    else if (top + this.rowHeight > scrollTop + this.room) this.node.scrollTop = top + this.rowHeight - this.room;
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
      Enter: () => this.active >= 0 && this.open(this.active),
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
