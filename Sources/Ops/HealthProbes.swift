/// What health asks of the running rooms, from any thread.
package struct HealthProbes: Sendable {
    /// For each event loop, how long ago it last did its work of every second.
    let loops: @Sendable () -> [Duration]
    /// How far the changes that were handed on are behind the database; nil while the feed is down, which says so
    /// itself.
    let feed: @Sendable () -> Duration?
    /// How far they may be.
    let mostBehind: Duration

    package init(
        mostBehind: Duration, loops: @escaping @Sendable () -> [Duration], feed: @escaping @Sendable () -> Duration?
    ) {
        self.mostBehind = mostBehind
        self.loops = loops
        self.feed = feed
    }
}
