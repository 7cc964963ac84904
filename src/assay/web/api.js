/**
 * Requests to the console, as docs/console.md describes them, and its live events. All addresses are relative.
 *
 * A report is the same page with the answers in it: then nothing is requested.
 */

import { sentence } from "./text.js";

const inlined = document.getElementById("answers");

/** The answers in the page by path; null in a console. */
export const REPORT = inlined === null ? null : JSON.parse(inlined.textContent);

/** An error of the console: `code` for programs, `message` and `remedy` for people. */
export class ApiError extends Error {
  constructor(status, detail) {
    super(detail.message ?? `The console answered with status ${status}.`);
    this.status = status;
    this.code = detail.code ?? "failed";
    this.remedy = detail.remedy ?? "";
  }
}

/** Return the text of any error for people. */
export function errorText(error) {
  if (error instanceof ApiError) return [error.message, error.remedy].filter(Boolean).map(sentence).join(" ");
  return error instanceof TypeError ? "The console does not answer. Is it still running?" : String(error);
}

async function checked(response) {
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new ApiError(response.status, body.error ?? {});
}

const LEFT_OUT = "The report has the text of messages with findings only; `assay console FILE` shows all.";

/** Return the JSON of a `GET`. */
export async function read(path) {
  if (REPORT === null)
    return (await checked(await fetch(`api/${path}`, { headers: { accept: "application/json" } }))).json();
  if (path in REPORT) return REPORT[path];
  throw new ApiError(404, { code: "unknown", message: LEFT_OUT });
}

function post(path, body) {
  const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return fetch(`api/${path}`, options).then(checked);
}

/** Return the JSON of a `POST`. */
export async function send(path, body) {
  return (await post(path, body)).json();
}

/** Return an exported file: its name, its text, and the number of rows that could not be exported. */
export async function exported(request) {
  const response = await post("export", request);
  const [, name] = /filename="?([^";]+)"?/.exec(response.headers.get("content-disposition") ?? "") ?? [];
  return {
    name: name ?? `assay.${request.format}`,
    text: await response.text(),
    left: Number(response.headers.get("assay-left-out") ?? 0),
  };
}

const EVENTS = ["rows", "servers", "findings", "sessions", "contracts", "dropped", "files"];
const FIRST_WAIT = 1000;
const LONGEST_WAIT = 15_000;

/**
 * The live events of the console.
 *
 * The browser connects again by itself after a lost connection, and sends the id of the last event, so that nothing is
 * missing. After `reset`, and after an error that ends the stream, everything is loaded again.
 */
export class LiveEvents {
  /** *listeners*: by the name of an event; `state` gets live, lost or ended; `reset` must load everything. */
  constructor(listeners) {
    this.listeners = listeners;
    this.source = null;
    this.wait = FIRST_WAIT;
    this.timer = null;
  }

  /** Listen from behind the row *after* and the change *tick*. */
  connect(after, tick) {
    this.close();
    const source = new EventSource(`api/events?after=${after}&tick=${tick}`);
    this.source = source;
    source.addEventListener("open", () => {
      this.wait = FIRST_WAIT;
      this.listeners.state("live");
    });
    source.addEventListener("error", () => {
      this.listeners.state("lost");
      if (source.readyState === EventSource.CLOSED) this.resetLater();
    });
    source.addEventListener("reset", () => {
      this.close();
      this.listeners.reset();
    });
    source.addEventListener("bye", () => {
      this.listeners.state("ended");
      this.resetLater();
    });
    for (const name of EVENTS)
      source.addEventListener(name, (event) => this.listeners[name](JSON.parse(event.data)));
  }

  /** Load everything after a while; the wait grows as long as the console does not answer. */
  resetLater() {
    this.close();
    this.timer = setTimeout(() => this.listeners.reset(), this.wait);
    this.wait = Math.min(LONGEST_WAIT, this.wait * 2);
  }

  close() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }
}
