/** What the screens of the console share: whether one is shown, the server that it is about, and how it is loaded. */

import { errorText } from "./console_api.js";
import { afterPress, notice, throttled } from "./console_parts.js";
import { element, fill } from "./dom.js";
import { patchChildren } from "./patch.js";

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
    const draw = () => this.isShown && work();
    const call = throttled(milliseconds, () => afterPress(draw));
    return () => this.isShown && call();
  }

  /** Bring a table with keyed rows up to date; the row that has the focus keeps it, or the *control* in it gets it. */
  fillRows(control, ...children) {
    const focused = document.activeElement;
    const key = focused?.closest?.("tr")?.dataset.key;
    patchChildren(this.body, element("div", null, ...children));
    if (key === undefined || focused === document.activeElement) return;
    if (focused.isConnected) focused.focus({ preventScroll: true });
    else this.body.querySelector(`tr[data-key="${CSS.escape(key)}"] ${control}`)?.focus({ preventScroll: true });
  }

  /** Show *text* in place of what is not there yet. */
  fillEmpty(text) {
    fill(this.body, element("p", { class: "empty panel" }, text));
  }
}
