// The service worker of the page: what the browser runs when a push comes, also while no page is open.

self.addEventListener("push", (event) => {
  // The hub's message has what showNotification() takes; `badge` is the number of what is unread, and no picture.
  const { title = "Roost", badge, ...options } = event.data?.json() ?? {};
  if (badge !== undefined) self.navigator.setAppBadge?.(badge);
  event.waitUntil(self.registration.showNotification(title, options));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(showPage());
});

async function showPage() {
  const [page] = await self.clients.matchAll({ type: "window" });
  return page ? page.focus() : self.clients.openWindow("./");
}
