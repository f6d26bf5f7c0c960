/** Milliseconds: two samples, one a second, must be missing before the page counts as stale. */
const STALE = 3_000;
const HEARTBEAT = 20_000;
const LONGEST_PAUSE = 10_000;

/**
 * The page's WebSocket, in Phoenix' frames: joins topics, again after every reconnect, and reconnects by itself.
 *
 * States: `connecting`, `live`, `stale` (connected, but nothing comes), `waiting` (for the next attempt).
 */
export class OpsSocket {
  #url;
  #onState;
  #channels = new Map();
  #replies = new Map();
  #ref = 0;
  #attempt = 0;
  #socket = null;
  #timers = { heartbeat: 0, retry: 0, stale: 0 };
  state = "connecting";

  /**
   * @param {string} url
   * @param {(state: string) => void} onState
   */
  constructor(url, onState) {
    this.#url = url;
    this.#onState = onState;
    // A laptop that wakes up should not wait for the end of a pause.
    addEventListener("online", () => this.state === "waiting" && this.#connect());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.state === "waiting") this.#connect();
    });
    this.#connect();
  }

  /**
   * @param {string} topic
   * @param {(event: string, payload: any) => void} handler
   * @returns {() => void} leaves the topic
   */
  join(topic, handler) {
    this.#channels.set(topic, { handler, joinRef: null });
    if (this.#isOpen) this.#sendJoin(topic);
    return () => {
      const channel = this.#channels.get(topic);
      if (channel?.handler !== handler) return;
      this.#channels.delete(topic);
      if (this.#isOpen) this.#send(channel.joinRef, String(++this.#ref), topic, "phx_leave", {});
    };
  }

  /**
   * @param {string} topic a joined topic
   * @returns {Promise<any>} the reply's response; rejected with an Error that has the reason
   */
  ask(topic, event, payload) {
    return new Promise((resolve, reject) => {
      if (!this.#isOpen) return reject(new Error("There is no connection to the hub"));
      const ref = String(++this.#ref);
      this.#replies.set(ref, { resolve, reject });
      this.#send(this.#channels.get(topic)?.joinRef ?? null, ref, topic, event, payload);
    });
  }

  get #isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  #connect() {
    clearTimeout(this.#timers.retry);
    this.#setState("connecting");
    const socket = (this.#socket = new WebSocket(this.#url));
    socket.onopen = () => {
      for (const topic of this.#channels.keys()) this.#sendJoin(topic);
      this.#timers.heartbeat = setInterval(
        () => this.#send(null, String(++this.#ref), "phoenix", "heartbeat", {}), HEARTBEAT);
    };
    socket.onmessage = (message) => this.#take(JSON.parse(message.data));
    socket.onclose = () => this.#socket === socket && this.#lost();
  }

  #lost() {
    this.#socket = null;
    clearInterval(this.#timers.heartbeat);
    clearTimeout(this.#timers.stale);
    for (const { reject } of this.#replies.values()) reject(new Error("The connection was lost before the hub answered"));
    this.#replies.clear();
    // Full jitter: every open page lost the same hub at once.
    const pause = Math.random() * Math.min(LONGEST_PAUSE, 500 * 2 ** this.#attempt++);
    this.#setState("waiting");
    this.#timers.retry = setTimeout(() => this.#connect(), pause);
  }

  #take([joinRef, ref, topic, event, payload]) {
    if (event === "phx_reply") {
      const reply = this.#replies.get(ref);
      this.#replies.delete(ref);
      if (payload.status === "ok") reply?.resolve(payload.response);
      else reply?.reject(new Error(payload.response.reason));
      return;
    }
    this.#attempt = 0;
    this.#setState("live");
    clearTimeout(this.#timers.stale);
    this.#timers.stale = setTimeout(() => this.#setState("stale"), STALE);
    this.#channels.get(topic)?.handler(event, payload);
  }

  #sendJoin(topic) {
    const ref = String(++this.#ref);
    this.#channels.get(topic).joinRef = ref;
    this.#send(ref, ref, topic, "phx_join", {});
  }

  #send(...frame) {
    this.#socket.send(JSON.stringify(frame));
  }

  #setState(state) {
    if (this.state === state) return;
    this.state = state;
    this.#onState(state);
  }
}
