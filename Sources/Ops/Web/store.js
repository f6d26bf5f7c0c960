/** What the hub has told of the last five minutes; kept whichever view is open. */
export class Store {
  static #MOST = 300;
  samples = [];
  figures = null;
  problem = null;
  logLevel = null;
  version = "";
  node = "";
  /** @type {{name: string, there: boolean, connections: number}[]} */
  others = [];
  #onChange;

  /** @param {() => void} onChange */
  constructor(onChange) {
    this.#onChange = onChange;
  }

  /** Takes an event of the topic `ops:overview`. */
  take(event, payload) {
    if (event === "history") {
      this.samples = payload.samples;
      this.version = payload.version;
      this.node = payload.node;
    } else if (event === "sample") {
      this.samples = [...this.samples, payload.sample].slice(-Store.#MOST);
      this.figures = payload.figures;
      this.problem = payload.problem;
      this.others = payload.others ?? [];
      this.logLevel = payload.logLevel;
    }
    this.#onChange();
  }
}
