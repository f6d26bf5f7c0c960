/** How long a message is in view before it counts as read; also what bundles a burst into one request. */
const GLANCE = 400;

/**
 * Tells the server what this user has received and read. One request per conversation and state at a time, with the
 * highest id; what cannot be told now is told by the next {@link flush}.
 */
export class ReceiptReporter {
  #api;
  #jobs = new Map();

  /** @param {import("./api.js").Api} api */
  constructor(api) {
    this.#api = api;
  }

  /**
   * @param {string} conversationId
   * @param {number} messageId
   * @param {"delivered"|"read"} state
   */
  report(conversationId, messageId, state) {
    const key = `${conversationId}/${state}`;
    const job = this.#jobs.get(key) ?? { conversationId, state, upTo: 0, due: false, busy: false, timer: 0 };
    this.#jobs.set(key, job);
    job.upTo = Math.max(job.upTo, messageId);
    job.due = true;
    job.timer ||= setTimeout(() => this.#send(job), state === "read" ? GLANCE : 0);
  }

  /** After a reconnect: whatever failed meanwhile. */
  flush() {
    for (const job of this.#jobs.values()) this.#send(job);
  }

  async #send(job) {
    clearTimeout(job.timer);
    job.timer = 0;
    if (!job.due || job.busy) return;
    job.due = false;
    job.busy = true;
    const sent = await this.#api
      .mark({ conversation_id: job.conversationId, up_to_message_id: job.upTo, state: job.state })
      .then(() => true, (error) => error.permanent === true);
    job.busy = false;
    if (!sent) job.due = true;
    else if (job.due) this.#send(job);
  }
}
