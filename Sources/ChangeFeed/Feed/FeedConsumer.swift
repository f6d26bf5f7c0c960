package import Hub

/// Takes what the feed reads. Called on the feed's thread only, one call at a time.
package protocol FeedConsumer: AnyObject, Sendable {
    /// The feed is connected and listens: every commit after this call is delivered. Comes again after a reconnect.
    func feedDidBecomeReady(_ catalog: Catalog)

    /// Tables were watched, unwatched, altered or dropped. An unchanged table stays the identical object.
    func catalogChanged(_ catalog: Catalog)

    /// Changes in order; at most 256, or about 256 KiB, at a time. May block: nothing is read meanwhile.
    func consume(_ changes: [RowChange])

    func statusChanged(_ status: FeedStatus)
}
