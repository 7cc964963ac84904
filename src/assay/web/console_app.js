/** The page of `assay console`: loads the state and the rows, shows one screen at a time, and keeps it up to date. */

import { ApiError, errorText, read, send } from "./console_api.js";
import { redrawCharts } from "./charts.js";
import { ContractsScreen } from "./console_contracts.js";
import { LiveEvents } from "./console_events.js";
import { FindingsScreen } from "./console_findings.js";
import { listenToConsoleKeys, showHelp } from "./console_keys.js";
import { copyMessage, MessageScreen } from "./console_message.js";
import { attempt, button, notice } from "./console_parts.js";
import { PerformanceScreen } from "./console_performance.js";
import { parseRoute, routeTo } from "./console_router.js";
import { ServersScreen } from "./console_servers.js";
import { SessionsScreen } from "./console_sessions.js";
import { ConsoleStore } from "./console_store.js";
import { StreamScreen } from "./console_stream.js";
import { element, fill } from "./dom.js";
import { refill } from "./patch.js";
import { number } from "./text.js";
import { switchTheme } from "./theme.js";

const SCREENS = [
  ["servers", "Servers", ServersScreen],
  ["stream", "Stream", StreamScreen],
  ["message", "Message", MessageScreen],
  ["findings", "Findings", FindingsScreen],
  ["contracts", "Contracts", ContractsScreen],
  ["sessions", "Sessions", SessionsScreen],
  ["performance", "Performance", PerformanceScreen],
];

const CONNECTIONS = {
  loading: ["Loading", "note"],
  live: ["Live", "good"],
  lost: ["Reconnecting", "warning"],
  ended: ["Console ended", "error"],
};

const TIME_PASSES = 5000;
/** Milliseconds after which screens say anew how long ago something was. */

class Page {
  constructor() {
    this.store = new ConsoleStore();
    this.screens = new Map();
    this.current = null;
    this.last = new Map([["message", routeTo("message")]]);
    this.main = element("main", { id: "main", class: "console-main" });
    this.banner = element("div", { class: "banners", role: "status" });
    this.connection = element("span", { class: "connection", role: "status" });
    this.theme = element("button", { type: "button", class: "theme" });
    this.signOut = button("Sign out", () => attempt(() => this.leave()), { class: "theme", hidden: true });
    this.tabs = SCREENS.map(([name, title], at) =>
      element(
        "a",
        { href: routeTo(name), "data-screen": name, title: `${title} (${at + 1})` },
        title,
        element("span", { class: "count" }),
      ),
    );
    this.events = new LiveEvents(this.listeners());
  }

  listeners() {
    const { store } = this;
    const board = (name) => (data) => store.tell(`board:${name}`, data);
    return {
      state: (connection) => store.setConnection(connection),
      reset: () => this.load(),
      rows: (data) => store.addRows(data.rows),
      servers: (data) => store.set("servers", data.servers),
      dropped: (data) => store.set("dropped", data),
      files: (data) => {
        store.set("loading", data.loading);
        store.set("failed", data.failed);
      },
      findings: board("findings"),
      sessions: board("sessions"),
      contracts: board("contracts"),
    };
  }

  start() {
    const header = element(
      "header",
      { class: "top console-top" },
      element("a", { class: "skip", href: "#main", on: { click: (event) => this.skip(event) } }, "Skip to the content"),
      element("span", { class: "brand" }, "assay ", element("span", null, "console")),
      element("nav", { class: "tabs", "aria-label": "Screens" }, ...this.tabs),
      this.connection,
      button("?", showHelp, { class: "theme", "aria-label": "Keys and filter words" }),
      this.theme,
      this.signOut,
    );
    document.body.append(
      header,
      this.banner,
      this.main,
      element("div", { id: "toast", role: "status", "aria-live": "polite" }),
    );
    switchTheme(this.theme, redrawCharts);
    const fragments = Object.fromEntries(
      SCREENS.map(([name], at) => [at + 1, () => this.last.get(name) ?? routeTo(name)]),
    );
    listenToConsoleKeys(fragments, () => this.current);
    addEventListener("hashchange", () => this.route());
    for (const topic of ["connection", "dropped", "loading", "failed", "servers"])
      this.store.on(topic, () => this.showState());
    this.store.on("copy", (seq) => copyMessage(seq));
    setInterval(() => this.store.tell("time"), TIME_PASSES);
    return this.load();
  }

  skip(event) {
    event.preventDefault();
    this.main.querySelector("h1")?.focus();
  }

  /** Load everything, and listen to what comes after it. */
  async load() {
    this.events.close();
    try {
      const rows = await read("rows");
      // After the rows, so that it has the servers of all of them.
      const state = await read("state");
      this.store.load(state, rows);
      this.events.connect(rows.newest, state.tick);
    } catch (error) {
      this.failed(error);
      return;
    }
    this.signOut.hidden = false;
    if (this.current === null) this.route();
    this.showState();
    document.body.dataset.ready = "true";
  }

  failed(error) {
    if (error instanceof ApiError && error.status === 401) {
      this.askForToken(error);
      return;
    }
    this.store.setConnection("lost");
    if (this.current === null) fill(this.main, notice("error", errorText(error)));
    this.events.resetLater();
  }

  /** Sign out this browser. The page is loaded again, so that nothing of the messages is left in it. */
  async leave() {
    this.events.close();
    try {
      await send("logout", {});
    } catch (error) {
      this.load();
      throw error;
    }
    location.replace(location.pathname);
  }

  /** Say how to sign in. */
  askForToken(error) {
    this.current = null;
    this.events.close();
    this.signOut.hidden = true;
    this.connection.replaceChildren();
    document.body.dataset.ready = "login";
    fill(
      this.main,
      element("h1", null, "Sign in"),
      element("p", null, errorText(error)),
      element("p", { class: "remark" }, "Open the address with the token that assay console printed when it started."),
    );
  }

  screen(name) {
    if (!this.screens.has(name)) {
      const Screen = SCREENS.find(([each]) => each === name)[2];
      this.screens.set(name, new Screen(this.store, this));
    }
    return this.screens.get(name);
  }

  route() {
    if (this.store.state === null) return;
    const route = parseRoute(location.hash);
    const name = SCREENS.some(([each]) => each === route.name) ? route.name : "servers";
    this.last.set(name, location.hash || routeTo(name));
    const screen = this.screen(name);
    const isOther = screen !== this.current;
    if (isOther) {
      this.current?.hide();
      this.current = screen;
      fill(this.main, screen.node);
      this.main.dataset.screen = name;
    }
    document.title = `${SCREENS.find(([each]) => each === name)[1]} – assay console`;
    for (const tab of this.tabs) {
      const isHere = tab.dataset.screen === name;
      if (isHere) {
        tab.setAttribute("aria-current", "page");
        // A phone has no room for all of them.
        tab.scrollIntoView({ block: "nearest", inline: "nearest" });
      } else tab.removeAttribute("aria-current");
      tab.setAttribute("href", this.last.get(tab.dataset.screen) ?? routeTo(tab.dataset.screen));
    }
    screen.show(route);
    if (isOther) this.focus(screen);
  }

  /** Screen readers continue at the new screen; a list takes the keys at once. */
  focus(screen) {
    if (
      document.activeElement !== null &&
      document.activeElement !== document.body &&
      document.activeElement.isConnected &&
      !this.main.contains(document.activeElement)
    ) {
      if (document.activeElement.closest(".tabs") !== null) return;
    }
    const target = screen.list?.node ?? this.main.querySelector("h1");
    target?.focus({ preventScroll: true });
  }

  showState() {
    const [text, tone] = CONNECTIONS[this.store.connection];
    this.connection.className = `connection tone-${tone}`;
    // Screen readers say what is put here, even if it is the same text again.
    refill(this.connection, element("span", { class: "dot", "aria-hidden": "true" }), text);
    const findings = this.store.servers.reduce((sum, each) => sum + each.findings, 0);
    const counts = { servers: this.store.servers.length, findings };
    for (const tab of this.tabs)
      refill(tab.querySelector(".count"), counts[tab.dataset.screen] ? number(counts[tab.dataset.screen]) : "");
    this.showBanners();
  }

  showBanners() {
    const { state } = this.store;
    if (state === null) return;
    const { dropped } = state;
    const lost = [
      dropped.details > 0 && `the details of ${number(dropped.details)} older messages`,
      dropped.groups > 0 && `${number(dropped.groups)} groups of findings`,
    ].filter(Boolean);
    // Counts that go on growing are not said again and again.
    const quiet = { "aria-live": "off", "data-key": "lost" };
    const notes = [
      ...state.loading.map((file) => notice("note", `Reading ${file} …`)),
      ...state.failed.map(({ file, why }) => notice("error", `Cannot read ${file}: ${why}`)),
      lost.length > 0 &&
        element("div", quiet, notice("note", `Not shown, to keep memory bounded: ${lost.join("; ")}.`)),
    ];
    refill(this.banner, ...notes.filter(Boolean));
  }
}

new Page().start();
