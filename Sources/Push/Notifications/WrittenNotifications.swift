package import Wire

/// Notifications that this hub has just stored, and that it may not have read back yet: a caller who sends one again is told that it is
/// a repetition.
///
/// Pure: times are passed in, in monotonic milliseconds.
package struct WrittenNotifications: Sendable {
    private struct Key: Hashable {
        let id: Name
        let user: Name
    }

    private var times: [Key: Int64] = [:]

    /// By this time a hub has read them, and the queue of alerts remembers them.
    package static let life: Int64 = 60_000
    /// Above this count some repeated ones are answered as if they were new; they are still sent only once.
    package static let capacity = 20_000

    package init() {}

    package mutating func add(_ id: Name, to users: [Name], at now: Int64) {
        if times.count + users.count > Self.capacity { times = times.filter { now - $0.value < Self.life } }
        for user in users where times.count < Self.capacity { times[Key(id: id, user: user)] = now }
    }

    package func contains(_ id: Name, to user: Name, at now: Int64) -> Bool {
        times[Key(id: id, user: user)].map { now - $0 < Self.life } ?? false
    }
}
