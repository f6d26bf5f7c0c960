package import Hub

/// Takes what the feed reads. Called on the feed's thread only, one call at a time.
package protocol FeedConsumer: AnyObject, Sendable {
    /// The feed is connected and listens: every commit after this call is delivered. Comes again after a reconnect.
    func feedDidBecomeReady(_ catalog: Catalog)

    /// Tables were watched, unwatched, altered or dropped, or who may see them changed. An unchanged table stays the
    /// identical object.
    func catalogChanged(_ catalog: Catalog)

    /// Comes before the first entry of a window in which one of these tables was written, of those that scopes name as
    /// members (`Catalog.memberTables`). All that commits before an entry of this window is told here or was told before.
    func membersChanged(_ tables: Set<UInt32>)

    /// Entries in order; at most 256, or about 256 KiB, at a time. May block: nothing is read meanwhile.
    ///
    /// - Throws: `PostgresError` where the database is needed for them and does not answer. The feed then connects anew,
    ///   and the entries come again.
    func consume(_ entries: [FeedEntry]) throws

    func statusChanged(_ status: FeedStatus)
}
