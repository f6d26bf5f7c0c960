import { Emitter } from "./emitter.js";

/** Between two questions, in milliseconds. */
const INTERVAL = 3_000;

/**
 * Whether the database answers. The hub keeps a pane's socket open while its database is away, so the socket does not tell;
 * every answer of the API does, and while nothing else is asked, this asks.
 *
 * Events: `change`.
 */
export class DatabaseWatch extends Emitter {
  up = true;
  #timer = 0;

  /**
   * @param {import("./api.js").Api} api
   * @param {import("./realtime.js").RealtimeClient} client
   */
  start(api, client) {
    this.#timer = setInterval(() => client.state === "open" && api.database().catch(() => {}), INTERVAL);
  }

  stop() {
    clearInterval(this.#timer);
  }

  /** @param {boolean} up what the last answer said */
  heard(up) {
    if (up === this.up) return;
    this.up = up;
    this.emit("change");
  }
}
