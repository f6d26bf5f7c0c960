/** Why a call failed; `permanent` when asking again cannot help. Its status is 0 where nobody answered. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }

  get permanent() {
    return this.status >= 400 && this.status < 500 && ![401, 408, 429].includes(this.status);
  }

  /** Nobody answers now (0), or asks us to come again: worth waiting for, however long it takes. */
  get isAway() {
    return [0, 408, 429, 503].includes(this.status);
  }
}

/**
 * The demo's HTTP API as one user (Sources/Demo/API.md).
 *
 * @typedef {{id: number, conversation_id: string, sender_id: string, body: string, local_id: string|null,
 *   created_at: string, edited_at: string|null}} MessageRow
 * @typedef {{message_id: number, user_id: string, delivered_at: string, read_at: string|null}} ReceiptRow
 * @typedef {{messages: MessageRow[], receipts: ReceiptRow[], more: boolean}} MessagePage
 * @typedef {{id: string, kind: "direct"|"group", title: string|null, muted: boolean, last_message: MessageRow|null,
 *   participants: {id: string, name: string, color: string}[], unread: number, undelivered: number}} Conversation
 */
export class Api {
  #session;
  #userId;
  #isCut;
  #onStatus;

  /**
   * @param {import("./session.js").Session} session
   * @param {string} userId
   * @param {{isCut: () => boolean, onStatus: (status: number) => void}} line `isCut`: no call gets through now;
   *   `onStatus` is told the status of each answer
   */
  constructor(session, userId, { isCut, onStatus }) {
    this.#session = session;
    this.#userId = userId;
    this.#isCut = isCut;
    this.#onStatus = onStatus;
  }

  /** Asks whether the database answers; whoever wants to know is told by `onStatus`. */
  database() {
    return this.#request("database");
  }

  /** @returns {Promise<Conversation[]>} the most recently active first */
  conversations() {
    return this.#request("conversations");
  }

  /**
   * @param {string} conversationId
   * @param {{limit?: number, before?: number}} [page] `before`: only messages with a lower id
   * @returns {Promise<MessagePage>}
   */
  messages(conversationId, { limit = 50, before } = {}) {
    const query = new URLSearchParams({ limit, ...(before !== undefined && { before }) });
    return this.#request(`conversations/${conversationId}/messages?${query}`);
  }

  /**
   * @param {{conversation_id: string, body: string, local_id: string}} message safe to repeat: same local_id, same row
   * @returns {Promise<MessageRow>}
   */
  send(message) {
    return this.#request("messages", message);
  }

  /** @param {{conversation_id: string, up_to_message_id: number, state: "delivered"|"read"}} mark */
  mark(mark) {
    return this.#request("receipts", mark);
  }

  async #request(path, body, renewed = false) {
    if (this.#isCut()) throw new ApiError(0, "this pane is offline");
    const token = await this.#session.token(this.#userId, renewed);
    const response = await fetch(`/demo/api/${path}`, {
      method: body ? "POST" : "GET",
      headers: { authorization: `Bearer ${token}`, ...(body && { "content-type": "application/json" }) },
      body: body && JSON.stringify(body),
      cache: "no-store",
      signal: AbortSignal.timeout(10_000),
    }).catch(() => {
      throw new ApiError(0, "the hub does not answer");
    });
    this.#onStatus(response.status);
    if (response.status === 401 && !renewed) return this.#request(path, body, true);
    const answer = await response.json().catch(() => ({}));
    if (response.status === 503) throw new ApiError(503, "Postgres does not answer");
    if (!response.ok) throw new ApiError(response.status, answer.error ?? `HTTP ${response.status}`);
    return answer;
  }
}
