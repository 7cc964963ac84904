/** Saved views of the stream, each with its count, and pinned messages. Both are remembered by the browser. */

import { button, throttled, toast } from "./console_parts.js";
import { FilteredLines } from "./console_filter.js";
import { go, routeTo } from "./console_router.js";
import { element } from "./dom.js";
import { refill } from "./patch.js";
import { number } from "./text.js";

const VIEWS = "assay-console-views";
const PINS = "assay-console-pins";
const MOST_VIEWS = 12;
const MOST_PINS = 50;

function remembered(key) {
  try {
    const value = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}

function remember(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Without storage, views and pins last as long as the page.
  }
}

export class SavedViews {
  /** *choose* gets the filter of a view; *redraw* is called when a pin has changed. */
  constructor(store, choose, redraw) {
    this.store = store;
    this.choose = choose;
    this.redraw = redraw;
    this.views = remembered(VIEWS)
      .filter((each) => typeof each === "string")
      .slice(0, MOST_VIEWS);
    this.pins = remembered(PINS)
      .filter((each) => typeof each?.seq === "number" && typeof each.epoch === "string")
      .slice(0, MOST_PINS);
    this.counts = new Map();
    this.node = element("span", { class: "chips views" });
    this.draw = throttled(500, () => this.show());
  }

  /** Count the lines of every view anew. */
  recount() {
    for (const each of this.counts.values()) each.close();
    this.counts = new Map(this.views.map((text) => [text, new FilteredLines(this.store, text, true, this.draw)]));
    for (const each of this.counts.values()) each.read();
    this.show();
  }

  update(touched) {
    for (const each of this.counts.values()) each.update(touched);
  }

  save(text) {
    if (text === "" || this.views.includes(text)) {
      toast(text === "" ? "Type a filter first: a view is a filter." : "This view is already saved.");
      return;
    }
    this.views = [...this.views, text].slice(-MOST_VIEWS);
    remember(VIEWS, this.views);
    this.recount();
    toast(`Saved the view ${text}.`);
  }

  remove(text) {
    this.views = this.views.filter((each) => each !== text);
    remember(VIEWS, this.views);
    this.recount();
  }

  get epoch() {
    return this.store.state?.epoch ?? "";
  }

  /** Pins are of one run of the console: the numbers of messages begin anew with each. */
  get ownPins() {
    return this.pins.filter((each) => each.epoch === this.epoch && this.store.rows.has(each.seq));
  }

  isPinned(seq) {
    return this.pins.some((each) => each.seq === seq && each.epoch === this.epoch);
  }

  togglePin(seq) {
    if (this.isPinned(seq)) this.pins = this.pins.filter((each) => each.seq !== seq);
    else this.pins = [...this.pins, { seq, epoch: this.epoch }].slice(-MOST_PINS);
    remember(PINS, this.pins);
    this.show();
    this.redraw();
  }

  show() {
    const key = JSON.stringify([this.views.map((text) => [text, this.counts.get(text)?.lines.length]), this.ownPins]);
    if (key === this.shown) return;
    this.shown = key;
    const views = this.views.map((text) =>
      element(
        "span",
        { class: "view", "data-key": `view ${text}` },
        button(
          [text, " ", element("b", null, number(this.counts.get(text)?.lines.length ?? 0))],
          () => this.choose(text),
          { class: "chip", title: "Use this view" },
        ),
        button("×", () => this.remove(text), { class: "chip remove", "aria-label": `Remove the view ${text}` }),
      ),
    );
    const pins = this.ownPins.map(({ seq }) =>
      button(["📌 ", element("b", null, number(seq))], () => go(routeTo("message", seq)), {
        class: "chip",
        title: "Open the pinned message",
        "data-key": `pin ${seq}`,
      }),
    );
    refill(this.node, ...views, ...pins);
  }
}
