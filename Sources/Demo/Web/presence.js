/**
 * Who is on a channel: keys, each with one entry per socket. State replaces everything, a diff changes it.
 * Entries are told apart by `phx_ref`, so that a diff that repeats what the state already said changes nothing.
 */
export class Presence {
  #members = new Map();

  /** @param {Record<string, {metas: {phx_ref: string}[]}>} state */
  replace(state) {
    this.#members = new Map(Object.entries(state).map(([key, { metas }]) => [key, metas]));
  }

  /** @param {{joins: Record<string, {metas: any[]}>, leaves: Record<string, {metas: any[]}>}} diff */
  apply({ joins = {}, leaves = {} }) {
    for (const [key, { metas }] of Object.entries(joins)) {
      const joining = new Set(metas.map((meta) => meta.phx_ref));
      const others = (this.#members.get(key) ?? []).filter((meta) => !joining.has(meta.phx_ref));
      this.#members.set(key, [...others, ...metas]);
    }
    for (const [key, { metas }] of Object.entries(leaves)) {
      const leaving = new Set(metas.map((meta) => meta.phx_ref));
      const rest = (this.#members.get(key) ?? []).filter((meta) => !leaving.has(meta.phx_ref));
      if (rest.length > 0) this.#members.set(key, rest);
      else this.#members.delete(key);
    }
  }

  clear() {
    this.#members.clear();
  }

  /** @returns {Set<string>} the keys that are present with at least one socket */
  get keys() {
    return new Set(this.#members.keys());
  }
}
