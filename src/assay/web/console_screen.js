/** What the screens of the console share: whether one is shown, the server that it is about, and how it is loaded. */

import { errorText } from "./console_api.js";
import { notice, throttled } from "./console_parts.js";
import { element, fill } from "./dom.js";

/** A screen that reads its data with `fetch`, and draws it with `render` into its body or node. */
export class ConsoleScreen {
  constructor(store) {
    this.store = store;
    this.isShown = false;
    /** The number of the only server that is shown; null for all of them. */
    this.server = null;
    this.body = element("div");
    store.on("loaded", () => this.restart());
  }

  /** Show the screen as its address asks. */
  show({ options }) {
    this.isShown = true;
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
      this.render();
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
    const call = throttled(milliseconds, () => this.isShown && work());
    return () => this.isShown && call();
  }

  /** Put a table with keyed rows into the body; the row that has the focus keeps it, at the *control* in it. */
  fillRows(control, ...children) {
    const focused = document.activeElement?.closest?.("tr")?.dataset.key;
    fill(this.body, ...children);
    if (focused === undefined) return;
    this.body.querySelector(`tr[data-key="${CSS.escape(focused)}"] ${control}`)?.focus({ preventScroll: true });
  }

  /** Show *text* in place of what is not there yet. */
  fillEmpty(text) {
    fill(this.body, element("p", { class: "empty panel" }, text));
  }
}
