/**
 * The button that has this browser notified of a person's messages, shown where the hub sends pushes to browsers and this
 * browser takes them.
 * @param {import("./session.js").Session} session
 * @param {import("./session.js").User} user
 */
export async function offerPushes(session, user) {
  const button = document.querySelector("#push");
  const key = "serviceWorker" in navigator && "PushManager" in window ? await publicKey() : null;
  button.hidden = !key;
  button.title = `Notifications of ${user.name}’s messages, also while this page is closed`;
  button.onclick = async () => {
    button.disabled = true;
    button.textContent = await subscribe(session, user, key).then(() => "You are notified", (error) => error.message);
  };
}

/** The key that browsers subscribe for, or null where the hub sends them nothing. */
async function publicKey() {
  const response = await fetch("/api/push/key", { signal: AbortSignal.timeout(10_000) }).catch(() => null);
  return response?.ok ? (await response.json()).publicKey : null;
}

async function subscribe(session, user, key) {
  if (await Notification.requestPermission() !== "granted") throw new Error("Notifications are not allowed");
  await navigator.serviceWorker.register("push-worker.js");
  const registration = await navigator.serviceWorker.ready;
  // Another key than the one it subscribed for before is refused.
  await registration.pushManager.getSubscription().then((old) => old?.unsubscribe());
  const subscription = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const response = await fetch("/api/devices", {
    method: "POST",
    headers: { authorization: `Bearer ${await session.token(user.id)}`, "content-type": "application/json" },
    body: JSON.stringify({ kind: "web", subscription }),
    signal: AbortSignal.timeout(10_000),
  });
  if (!response.ok) throw new Error((await response.json()).message);
}
