import { ASSISTANT, isQuestion, streamName } from "./assistant.js";
import { Reply } from "./reply.js";

/** For how long a question may wait for its reply: a hub keeps a stream for five minutes behind its end. */
const WAITS = 10 * 60_000;
const MOST = 8;
const STAGES = { open: "streaming", stalled: "stalled", cancelled: "stopped", aborted: "broken" };

/**
 * The assistant's replies in one conversation that are not rows yet. A reply and its row are one entry of the store, because
 * both have the question's local id: the row takes the place of the text, and no list can ever show the two.
 */
export class Replies {
  #client;
  #conversationId;
  #store;
  #onChange;
  #onProblem;
  /** @type {Map<string, Reply>} by the question's local id */
  #watched = new Map();

  /**
   * @param {{client: import("./realtime.js").RealtimeClient, conversationId: string,
   *   store: import("./message-store.js").MessageStore, onChange: () => void, onProblem: (text: string) => void}} options
   */
  constructor({ client, conversationId, store, onChange, onProblem }) {
    this.#client = client;
    this.#conversationId = conversationId;
    this.#store = store;
    this.#onChange = onChange;
    this.#onProblem = onProblem;
  }

  /** To be called when messages came: questions without an answer are watched, and answered ones no longer. */
  look() {
    const isAnswered = (localId) => this.#store.find(ASSISTANT.id, localId)?.stage === "stored";
    for (const [localId, reply] of this.#watched) {
      if (!isAnswered(localId)) continue;
      reply.close();
      this.#watched.delete(localId);
    }
    const questions = this.#store.entries.filter(({ stage, body, localId, createdAt }) =>
      stage === "stored" && localId && isQuestion(body) && Date.now() - Date.parse(createdAt) < WAITS);
    for (const { localId } of questions.slice(-MOST)) {
      if (!this.#watched.has(localId) && !isAnswered(localId)) this.#watch(localId);
    }
  }

  /** @param {string} localId of the question */
  stop(localId) {
    this.#watched.get(localId)?.stop();
  }

  close() {
    for (const reply of this.#watched.values()) reply.close();
    this.#watched.clear();
  }

  #watch(localId) {
    const reply = new Reply(this.#client, streamName(this.#conversationId, localId));
    const createdAt = new Date().toISOString();
    this.#watched.set(localId, reply);
    reply.on("problem", this.#onProblem);
    reply.on("change", () => {
      const { text: body, status, row } = reply;
      if (row) this.#store.put(row);
      else if (status === "deleted") this.#store.dropDraft(ASSISTANT.id, localId);
      // What is complete is about to be a row.
      else this.#store.putDraft({ localId, senderId: ASSISTANT.id, body, createdAt, stage: STAGES[status] ?? "streaming" });
      this.#onChange();
    });
    reply.open();
  }
}
