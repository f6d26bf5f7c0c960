/** A minimal event source: listeners by name, called in the order they were added. */
export class Emitter {
  #listeners = new Map();

  /**
   * @param {string} name
   * @param {(detail: any) => void} listener
   * @returns {() => void} removes the listener
   */
  on(name, listener) {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  /**
   * @param {string} name
   * @param {any} [detail]
   */
  emit(name, detail) {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) listener(detail);
  }
}
