import { Emitter } from "./emitter.js";

/**
 * A stream of text, watched on its channel `stream:NAME` until it ends. Whatever happens to the connection, `text` is a
 * beginning of the stream, byte for byte: a frame that does not continue it is not taken.
 *
 * Events: `change`, `problem` (text).
 */
export class Reply extends Emitter {
  text = "";
  /** @type {"open"|"stalled"|"complete"|"cancelled"|"aborted"|"deleted"|null} null: nobody has begun to write it */
  status = null;
  /** What the text became in the table, if it was written together with the end. */
  row = null;
  #client;
  #channel;
  #id = null;
  /** How far we are, in bytes of UTF-8. */
  #next = 0;

  /**
   * @param {import("./realtime.js").RealtimeClient} client
   * @param {string} name of the stream
   */
  constructor(client, name) {
    super();
    this.#client = client;
    this.#channel = client.channel(`realtime:stream:${name}`, {
      private: true,
      // Whoever comes back says where it was, and gets what came since.
      config: () => (this.#id === null ? {} : { stream: { id: this.#id, at: this.#next } }),
    });
    this.#channel.onBroadcast("stream", (payload) => this.#take(payload));
    this.#channel.on("system", ({ status, message }) => status === "error" && this.emit("problem", message));
  }

  open() {
    this.#client.join(this.#channel);
  }

  close() {
    this.#channel.leave();
  }

  /** Ends the stream for everybody, where it is now. */
  stop() {
    this.#channel.broadcast("cancel", {});
  }

  get hasEnded() {
    return this.status !== null && this.status !== "open" && this.status !== "stalled";
  }

  #take({ id, at, next, delta, status, row }) {
    if (id !== this.#id || at === 0) {
      this.#id = id;
      this.#next = 0;
      this.text = "";
    }
    if (at === this.#next && next !== undefined) {
      this.text += delta ?? "";
      this.#next = next;
    }
    this.status = status ?? this.status ?? "open";
    this.row = row ?? this.row;
    this.emit("change");
    if (this.hasEnded) this.close();
  }
}
