/** Capped exponential backoff with full jitter: a thousand clients that lost the same hub do not return as one. */
export class Backoff {
  #attempt = 0;

  /** @param {{base?: number, cap?: number, random?: () => number}} [options] milliseconds */
  constructor({ base = 1_000, cap = 15_000, random = Math.random } = {}) {
    this.base = base;
    this.cap = cap;
    this.random = random;
  }

  /** @returns {number} how many milliseconds to wait before the next attempt */
  next() {
    const ceiling = Math.min(this.cap, this.base * 2 ** this.#attempt);
    this.#attempt += 1;
    return this.random() * ceiling;
  }

  /** To be called once a connection has been stable, not when it merely opened. */
  reset() {
    this.#attempt = 0;
  }
}
