/// Time that Postgres gets for the next row of a window before the connection counts as dead.
///
/// A window's rows are sorted before the first of them arrives: a second for a million short ones. A window that took
/// longer than allowed would come back just as large on every new connection, and no client would receive anything again.
/// So each failure doubles the time for the next connection, until the window arrives. A frozen server accepts no
/// connection either, so it does not raise the limit.
///
/// Pure; confined to the feed's thread.
struct WindowPatience {
    private let least: Duration
    private(set) var limit: Duration
    /// Enough for a sort on disk; a longer wait means another problem.
    private static let most = Duration.seconds(900)

    init(least: Duration) {
        self.least = least
        limit = least
    }

    /// A window did not arrive within `limit`.
    mutating func windowTimedOut() { limit = max(least, min(limit * 2, Self.most)) }

    /// A window arrived.
    mutating func windowArrived() { limit = least }
}
