import { Emitter } from "./emitter.js";

const ANNOUNCE_EVERY = 1_000;
const SILENCE = 3_000;

/** Says that this user is typing: at most once a second, and once when it is over. */
export class TypingAnnouncer {
  #announce;
  #last = -Infinity;

  /** @param {(typing: boolean) => void} announce */
  constructor(announce) {
    this.#announce = announce;
  }

  /** @param {boolean} hasText whether there is anything in the composer after this keystroke */
  keystroke(hasText) {
    if (!hasText) return this.stop();
    const now = performance.now();
    if (now - this.#last < ANNOUNCE_EVERY) return;
    this.#last = now;
    this.#announce(true);
  }

  stop() {
    // After a silence the others have ended it themselves.
    if (performance.now() - this.#last < SILENCE) this.#announce(false);
    this.#last = -Infinity;
  }
}

/** Who else is typing. Someone who falls silent for three seconds is not, whatever was or was not heard. */
export class TypingSet extends Emitter {
  #typists = new Map();

  /** @param {{typing: boolean, user_id: string, name: string}} payload */
  hear({ typing, user_id: id, name }) {
    if (!typing) return this.end(id);
    const known = this.#typists.get(id);
    clearTimeout(known?.timer);
    const timer = setTimeout(() => this.end(id), SILENCE);
    this.#typists.set(id, { id, name: String(name), timer });
    if (!known) this.emit("change");
  }

  /** @param {string} id of someone whose message arrived, or who left */
  end(id) {
    const typist = this.#typists.get(id);
    if (!typist) return;
    clearTimeout(typist.timer);
    this.#typists.delete(id);
    this.emit("change");
  }

  /** @param {{user_id: string, name: string}[]} typists all of them, as the hub says to whoever joins */
  replace(typists) {
    this.clear();
    for (const typist of typists) this.hear({ ...typist, typing: true });
  }

  clear() {
    for (const id of [...this.#typists.keys()]) this.end(id);
  }

  /** @returns {{id: string, name: string}[]} */
  get typists() {
    return [...this.#typists.values()];
  }
}
