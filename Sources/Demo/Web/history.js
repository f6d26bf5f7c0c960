const MOST_PAGES = 6;

/**
 * Fills a store with the newest history, back to `mark`. When that is further than a few pages, what lies before them
 * is dropped instead ("Show earlier" brings it back): a list may be short, but it must never have a hole.
 *
 * @param {import("./message-store.js").MessageStore} store
 * @param {(before?: number) => Promise<import("./api.js").MessagePage>} fetchPage
 * @param {number|undefined} mark the newest id at the time when nothing was missing yet; undefined: nothing is held
 * @returns {Promise<boolean|undefined>} whether there is earlier history; undefined: as it was before
 */
export async function catchUp(store, fetchPage, mark) {
  let before;
  for (let pages = 1; pages <= MOST_PAGES; pages += 1) {
    const page = await fetchPage(before);
    addPage(store, page);
    if (mark === undefined || !page.more) return page.more;
    before = page.messages[0].id;
    if (before <= mark) return undefined;
  }
  store.dropBefore(before);
  return true;
}

/**
 * @param {import("./message-store.js").MessageStore} store
 * @param {import("./api.js").MessagePage} page
 */
export function addPage(store, { messages, receipts }) {
  for (const message of messages) store.put(message);
  for (const receipt of receipts) store.putReceipt(receipt);
}
