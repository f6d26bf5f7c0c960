const RENEW_BEFORE_EXPIRY = 60_000;

/**
 * @typedef {{id: string, name: string, color: string, token: string}} User
 */

/** The people of the demo and their tokens, fetched again when a token is about to expire or was refused. */
export class Session {
  #users = [];
  #loading = null;
  psql = "";
  /** The port of the operator's page on this host; undefined where there is none. */
  operatorPort = undefined;

  /** @returns {Promise<void>} */
  load() {
    // Two panes may ask at the same moment; one request serves both.
    this.#loading ??= this.#fetch().finally(() => (this.#loading = null));
    return this.#loading;
  }

  /** @returns {User[]} */
  get users() {
    return this.#users;
  }

  /**
   * @param {string} id
   * @returns {User|undefined}
   */
  user(id) {
    return this.#users.find((user) => user.id === id);
  }

  /**
   * @param {string|null} name as in `?user=ada`
   * @returns {User|undefined}
   */
  named(name) {
    return this.#users.find((user) => user.name.toLowerCase() === name?.toLowerCase());
  }

  /**
   * @param {string} userId
   * @param {boolean} [renew] the current token did not work
   * @returns {Promise<string>}
   */
  async token(userId, renew = false) {
    if (renew || expiry(this.user(userId)?.token) - Date.now() < RENEW_BEFORE_EXPIRY) await this.load();
    return this.user(userId).token;
  }

  async #fetch() {
    const response = await fetch("/demo/api/session", { cache: "no-store", signal: AbortSignal.timeout(10_000) });
    if (response.status === 503) throw new Error("The hub runs, but its Postgres does not answer");
    if (!response.ok) throw new Error(`The demo's session could not be read (${response.status})`);
    const { users, psql, operator_port: operatorPort } = await response.json();
    this.#users = users;
    this.psql = psql;
    this.operatorPort = operatorPort;
  }
}

/** When a JWT expires, in milliseconds; for one that cannot be read, never: the hub decides, not the page. */
function expiry(token) {
  try {
    const { exp } = JSON.parse(atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")));
    return exp * 1000;
  } catch {
    return Infinity;
  }
}
