package import Wire

/// Notifications that this hub has written a moment ago, and that it may not have read yet: whoever sends one again is told that it is
/// repeated.
///
/// Pure: times are passed in, in monotonic milliseconds.
package struct WrittenNotifications: Sendable {
    private struct Key: Hashable {
        let id: Name
        let user: Name
    }

    private var times: [Key: Int64] = [:]

    /// By then a hub has read them, and the queue of alerts remembers them.
    package static let life: Int64 = 60_000
    /// Beyond it some repeated ones are answered as if they were new; they are sent once all the same.
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
