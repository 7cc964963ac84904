/**
 * The live events of the console.
 *
 * The browser connects again by itself after a lost connection, and sends the id of the last event, so that nothing is
 * missing. After `reset`, and after an error that ends the stream, everything is loaded again.
 */

const NAMES = ["rows", "servers", "findings", "sessions", "contracts", "dropped", "files"];

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 15_000;

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
    for (const name of NAMES) {
      source.addEventListener(name, (event) => this.listeners[name]?.(JSON.parse(event.data)));
    }
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
