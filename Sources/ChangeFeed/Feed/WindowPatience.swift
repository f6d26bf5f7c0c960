/// How long Postgres may take for the next row of a window before the connection counts as dead.
///
/// A window's rows are sorted before the first of them comes: a second for a million short ones. A window that took longer
/// than allowed would come back, as large as before, on every new connection, and nobody would hear anything again. So it is
/// given twice the time on the next, until it comes. A server that is frozen answers no connection either, and costs no
/// patience.
///
/// Pure; confined to the feed's thread.
struct WindowPatience {
    private let least: Duration
    private(set) var limit: Duration
    /// For as much as a disk takes to sort; whoever has more to wait for has another problem.
    private static let most = Duration.seconds(900)

    init(least: Duration) {
        self.least = least
        limit = least
    }

    /// A window did not come within `limit`.
    mutating func wasTooShort() { limit = max(least, min(limit * 2, Self.most)) }

    /// A window came.
    mutating func sufficed() { limit = least }
}
