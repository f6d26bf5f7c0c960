/**
 * The messages of one conversation, wherever they came from: typed here, read from the API, or pushed by the hub.
 * The same message may arrive by all three ways and in any order; it is one entry, known by its id and, if it was
 * sent from here, by its local id. Receipts are kept apart, because one may overtake its message.
 *
 * @typedef {"pending"|"failed"|"streaming"|"stalled"|"stopped"|"broken"|"stored"} Stage
 * @typedef {{key: string, id: number|null, localId: string|null, senderId: string, body: string, createdAt: string,
 *   editedAt: string|null, stage: Stage, latency?: number, reason?: string}} Entry `reason`: why it is not sent yet
 */
export class MessageStore {
  #entries = new Map();
  #receipts = new Map();
  #sorted = null;

  /**
   * @param {import("./api.js").MessageRow} row
   * @returns {{entry: Entry, isNew: boolean}} isNew: not seen before, not even as pending
   */
  put(row) {
    const key = keyOf(row.sender_id, row.local_id, row.id);
    const known = this.#entries.get(key);
    const entry = {
      ...known,
      key,
      id: row.id,
      localId: row.local_id,
      senderId: row.sender_id,
      body: row.body,
      createdAt: row.created_at,
      editedAt: row.edited_at,
      stage: "stored",
    };
    this.#entries.set(key, entry);
    this.#sorted = null;
    return { entry, isNew: !known };
  }

  /** @param {{localId: string, senderId: string, body: string, createdAt: string, stage: Stage, reason?: string}} draft */
  putDraft(draft) {
    const key = keyOf(draft.senderId, draft.localId, null);
    if (this.#entries.get(key)?.stage === "stored") return;
    this.#entries.set(key, { key, id: null, editedAt: null, ...draft });
    this.#sorted = null;
  }

  /** For a draft that has become nothing. */
  dropDraft(senderId, localId) {
    if (this.find(senderId, localId)?.stage === "stored") return;
    this.#entries.delete(keyOf(senderId, localId, null));
    this.#sorted = null;
  }

  /**
   * @param {string} senderId
   * @param {string} localId
   * @returns {Entry|undefined}
   */
  find(senderId, localId) {
    return this.#entries.get(keyOf(senderId, localId, null));
  }

  /** @param {import("./api.js").ReceiptRow} receipt */
  putReceipt({ message_id, user_id, read_at }) {
    const readers = this.#receipts.get(message_id) ?? new Map();
    // Never back from read to delivered: a reload may be older than what was pushed meanwhile.
    if (readers.get(user_id) !== "read") readers.set(user_id, read_at ? "read" : "delivered");
    this.#receipts.set(message_id, readers);
  }

  /**
   * How far a message of one's own has come: as far as with the slowest of the others.
   * @param {Entry} entry
   * @param {string[]} others ids of the other participants
   * @returns {"pending"|"failed"|"sent"|"delivered"|"read"}
   */
  status(entry, others) {
    if (entry.stage !== "stored") return entry.stage;
    const readers = this.#receipts.get(entry.id);
    if (others.length === 0 || !others.every((id) => readers?.has(id))) return "sent";
    return others.every((id) => readers.get(id) === "read") ? "read" : "delivered";
  }

  /** @returns {Entry[]} stored ones by id, then what is still on its way, in the order of writing */
  get entries() {
    this.#sorted ??= [...this.#entries.values()].sort((a, b) => (a.id ?? Infinity) - (b.id ?? Infinity) || 0);
    return this.#sorted;
  }

  get oldestId() {
    return this.entries[0]?.id ?? undefined;
  }

  get newestId() {
    return this.entries.findLast((entry) => entry.id !== null)?.id;
  }

  /** Forgets stored messages with a lower id, so that what remains is without a hole. */
  dropBefore(id) {
    for (const { key, id: own } of this.entries) {
      if (own !== null && own < id) {
        this.#entries.delete(key);
        this.#receipts.delete(own);
      }
    }
    this.#sorted = null;
  }
}

/** Stable from the first keystroke of a draft to the stored row, so that its bubble is never replaced. */
function keyOf(senderId, localId, id) {
  return localId ? `${senderId}/${localId}` : `#${id}`;
}
