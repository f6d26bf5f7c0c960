import { Backoff } from "./backoff.js";

/** For errors that say nothing of whether another attempt helps. */
const MOST_ATTEMPTS = 6;

/**
 * What one user has written and the server does not have yet. Sends one after the other, so that messages keep their
 * order, and repeats on failure: the local id makes repeating safe. While nobody answers it repeats for as long as that
 * takes, and says why (`reason`). `failed` items wait for {@link retry}.
 *
 * @typedef {{conversationId: string, localId: string, body: string, createdAt: string, stage: "pending"|"failed",
 *   reason?: string}} Item
 */
export class Outbox {
  #items = [];
  #running = false;
  #send;
  #onSent;
  #onChange;
  #wake = null;

  /**
   * @param {{send: (item: Item) => Promise<any>, onSent: (row: any) => void, onChange: (item: Item) => void}} hooks
   */
  constructor({ send, onSent, onChange }) {
    this.#send = send;
    this.#onSent = onSent;
    this.#onChange = onChange;
  }

  /** @param {{conversationId: string, body: string}} message */
  add({ conversationId, body }) {
    const createdAt = new Date().toISOString();
    const item = { conversationId, body, localId: crypto.randomUUID(), createdAt, stage: "pending" };
    this.#items.push(item);
    this.#onChange(item);
    this.#run();
  }

  /** @param {string} localId of an item that failed */
  retry(localId) {
    const item = this.#items.find((candidate) => candidate.localId === localId && candidate.stage === "failed");
    if (!item) return;
    item.stage = "pending";
    delete item.reason;
    this.#onChange(item);
    this.#run();
  }

  /** The connection or the database is back: do not sit out the rest of a waiting time. */
  hurry() {
    this.#wake?.();
  }

  /** @param {string} conversationId */
  itemsOf(conversationId) {
    return this.#items.filter((item) => item.conversationId === conversationId);
  }

  async #run() {
    if (this.#running) return;
    this.#running = true;
    for (let item; (item = this.#items.find(({ stage }) => stage === "pending")); ) await this.#deliver(item);
    this.#running = false;
  }

  async #deliver(item) {
    const backoff = new Backoff();
    for (let attempt = 1; ; attempt += 1) {
      try {
        const row = await this.#send(item);
        this.#items.splice(this.#items.indexOf(item), 1);
        this.#onSent(row);
        return;
      } catch (error) {
        item.reason = error.message;
        if (error.permanent || (attempt >= MOST_ATTEMPTS && !error.isAway)) item.stage = "failed";
        this.#onChange(item);
        if (item.stage === "failed") return;
      }
      await new Promise((resolve) => {
        this.#wake = resolve;
        setTimeout(resolve, backoff.next());
      });
    }
  }
}
