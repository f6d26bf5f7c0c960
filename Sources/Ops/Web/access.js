import { el } from "./element.js";

const KEY = "roost-ops-token";

/** Keeps the address's token for this tab and removes it from the address, which people copy and share. */
export function takeToken() {
  const address = new URL(location.href);
  const token = address.searchParams.get("token");
  if (token !== null) {
    sessionStorage.setItem(KEY, token);
    address.searchParams.delete("token");
    history.replaceState(null, "", address);
  }
  return sessionStorage.getItem(KEY);
}

/** The URL of the hub's WebSocket for this page. */
export function socketAddress() {
  const address = new URL("/ops/websocket", location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  address.searchParams.set("vsn", "2.0.0");
  const token = sessionStorage.getItem(KEY);
  if (token) address.searchParams.set("token", token);
  return address.href;
}

/**
 * Waits until the hub admits this page; asks for the token if one is needed. A browser does not tell a page why a
 * WebSocket was refused, so the hub is asked first.
 * @param {HTMLElement} main the element to ask in
 */
export async function admission(main) {
  for (let attempt = 0; ; attempt += 1) {
    const answer = await ask();
    if (answer?.status === 200) return main.replaceChildren();
    if (answer?.status === 401) {
      sessionStorage.setItem(KEY, await askForToken(main, sessionStorage.getItem(KEY) !== null));
    } else if (answer?.status === 403) {
      main.replaceChildren(el("p", { class: "empty", dataset: { testid: "forbidden" } }, await answer.text()));
      return new Promise(() => {});
    } else {
      main.replaceChildren(el("p", { class: "empty" }, "The hub does not answer. This page keeps trying."));
      await new Promise((resolve) => setTimeout(resolve, Math.min(10_000, 500 * 2 ** attempt)));
    }
  }
}

async function ask() {
  const token = sessionStorage.getItem(KEY);
  try {
    return await fetch("/ops/access", { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  } catch {
    return null;
  }
}

function askForToken(main, wasWrong) {
  return new Promise((resolve) => {
    const input = el("input", {
      type: "password", id: "token", autocomplete: "off", required: true, dataset: { testid: "token" },
      "aria-describedby": "token-note",
    });
    const form = el("form", {
      class: "card token", dataset: { testid: "token-form" },
      onsubmit: (event) => {
        event.preventDefault();
        resolve(input.value.trim());
      },
    },
      el("h2", {}, "This hub asks for a token"),
      el("label", { for: "token" }, "Token"), input,
      el("p", { id: "token-note", class: wasWrong ? "note bad" : "note", role: wasWrong ? "alert" : false },
        wasWrong ? "That is not the hub's token." : "It is the setting ops.token (ROOST_OPS_TOKEN). This tab keeps it until it is closed."),
      el("button", { class: "primary" }, "Open"));
    main.replaceChildren(form);
    input.focus();
  });
}
