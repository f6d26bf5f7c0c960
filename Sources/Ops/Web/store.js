/** The hub's samples of the last five minutes; kept whichever view is open. */
export class Store {
  static #MOST = 300;
  samples = [];
  figures = null;
  problem = null;
  logLevel = null;
  /** The hubs, if several act as one. */
  cluster = null;
  version = "";
  node = "";
  #onChange;

  /** @param {() => void} onChange */
  constructor(onChange) {
    this.#onChange = onChange;
  }

  /** Applies an event of the topic `ops:overview`. */
  take(event, payload) {
    if (event === "history") {
      this.samples = payload.samples;
      this.version = payload.version;
      this.node = payload.node;
    } else if (event === "sample") {
      this.samples = [...this.samples, payload.sample].slice(-Store.#MOST);
      this.figures = payload.figures;
      this.problem = payload.problem;
      this.logLevel = payload.logLevel;
      this.cluster = payload.cluster;
    }
    this.#onChange();
  }
}
