/** What the screens of the console share: whether one is shown, the server that it is about, and how it is loaded. */

import { errorText } from "./console_api.js";
import { afterPress, notice, throttled } from "./console_parts.js";
import { element, fill } from "./dom.js";
import { refill } from "./patch.js";

/** A screen that reads its data with `fetch`, and draws it with `render` into its body or node. */
export class ConsoleScreen {
  constructor(store) {
    this.store = store;
    this.isShown = false;
    /** The number of the only server that is shown; null for all of them. */
    this.server = null;
    this.body = element("div");
    this.draw = () => this.isShown && this.render();
    /** Places of the rows of the screen, by key. */
    this.order = new Map();
    this.isHeld = false;
    this.body.addEventListener("pointerleave", () => this.isHeld && afterPress(this.draw));
    store.on("loaded", () => this.restart());
  }

  /** Show the screen as its address asks. */
  show({ options }) {
    this.isShown = true;
    this.order.clear();
    this.server = options.server ? Number(options.server) : null;
    return this.load();
  }

  hide() {
    this.isShown = false;
  }

  /** The page has loaded everything anew. */
  restart() {
    if (this.isShown) this.load();
  }

  async load() {
    try {
      await this.fetch();
      afterPress(this.draw);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Read the data; a screen whose data the store has needs nothing. */
  async fetch() {}

  fail(error) {
    fill(this.body, notice("error", errorText(error)));
  }

  /** Return a function that calls *work* at most once in *milliseconds*, and only while the screen is shown. */
  whileShown(milliseconds, work) {
    const draw = () => this.isShown && work();
    const call = throttled(milliseconds, () => afterPress(draw));
    return () => this.isShown && call();
  }

  /** Draw again as time passes: the screen says how long ago something was. */
  showAges() {
    this.store.on("time", this.whileShown(0, this.draw));
  }

  /**
   * Return *items* in the order of *compare*.
   *
   * While the pointer is on the screen, what it shows keeps its place, and what is new comes last: otherwise a click
   * may hit a row that has just moved there.
   */
  steady(items, keyOf, compare) {
    this.isHeld = this.order.size > 0 && this.body.matches(":hover");
    const place = (item) => (this.isHeld ? (this.order.get(keyOf(item)) ?? this.order.size) : 0);
    const sorted = items.sort((one, other) => place(one) - place(other) || compare(one, other));
    this.order = new Map(sorted.map((each, at) => [keyOf(each), at]));
    return sorted;
  }

  /** Call *draw*. What has the focus keeps it, also if it is moved; if it is gone, what *other* returns gets it. */
  keepFocus(draw, other = () => null) {
    const focused = document.activeElement;
    draw();
    if (focused !== document.activeElement)
      (focused?.isConnected ? focused : other())?.focus({ preventScroll: true });
  }

  /** Bring a table with keyed rows up to date; if what has the focus is gone, the *control* in its row gets it. */
  fillRows(control, ...children) {
    const key = CSS.escape(document.activeElement?.closest("tr")?.dataset.key ?? "");
    this.keepFocus(
      () => refill(this.body, ...children),
      () => this.body.querySelector(`tr[data-key="${key}"] ${control}`),
    );
  }

  /** Show *text* in place of what is not there yet. */
  fillEmpty(text) {
    fill(this.body, element("p", { class: "empty panel" }, text));
  }
}
