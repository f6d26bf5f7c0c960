package import Wire

/// The users whose phones are due a new number on their icons, because something was read, and the times.
///
/// A user who reads usually reads on: several conversations within `delay` make one push. Pure; time is passed in, in monotonic
/// milliseconds.
package struct BadgeQueue: Sendable {
    private var due: [Name: Int64] = [:]
    /// Above this count some icons stay as they are until the next alert.
    package static let capacity = 20_000

    package init() {}

    package var nextDue: Int64? { due.values.min() }

    /// Adds a user who has read something, or who should be told later.
    package mutating func put(_ user: Name, at time: Int64) {
        guard due[user] != nil || due.count < Self.capacity else { return }
        due[user] = min(due[user] ?? time, time)
    }

    /// Takes the users whose time has come, the longest due first.
    package mutating func take(at now: Int64, limit: Int) -> [Name] {
        let users = due.filter { $0.value <= now }.sorted { $0.value < $1.value }.prefix(limit).map(\.key)
        for user in users { due[user] = nil }
        return users
    }
}
