import Wire

/// Users that hold up the writing of others: their row is locked, or the application's statement ends the session for
/// them.
///
/// After a batch was held up twice in a row, its users are written one by one. A user that holds up the others alone is
/// set aside and retried alone, after growing pauses. Outlives sessions; confined to one thread. Time is passed in.
struct UserTrials {
    typealias Instant = ContinuousClock.Instant

    private struct Pause {
        var length: Duration
        var until: Instant
    }

    /// The number of consecutive hold-ups of a batch.
    private var holdUps = 0
    /// Users during whose write a session was lost once.
    private var struck: Set<Name> = []
    private var aside: [Name: Pause] = [:]
    private let firstPause: Duration

    private static let mostHoldUps = 2
    /// The ratio of the longest pause to the first.
    private static let growth = 64
    /// The most users remembered: each has cost a wait or a session.
    private static let mostAside = 10_000

    init(firstPause: Duration) { self.firstPause = firstPause }

    /// Whether all users are written one by one.
    var isApart: Bool { holdUps >= Self.mostHoldUps }

    /// Whether no user is set aside.
    var isEmpty: Bool { aside.isEmpty }

    mutating func noteHoldUp() { holdUps = min(holdUps + 1, Self.mostHoldUps) }

    /// Notes that a batch went through, except for users that were set aside.
    mutating func noteSuccess() {
        holdUps = 0
        struck.removeAll()
    }

    /// Whether a user that was set aside is due again; nil for all others.
    func isDue(_ user: Name, at now: Instant) -> Bool? { aside[user].map { $0.until <= now } }

    /// Notes that a session was lost while a user was written alone.
    ///
    /// - Returns: true at the second time; the first may be a coincidence.
    mutating func noteSessionLoss(_ user: Name) -> Bool {
        if aside[user] != nil { return true }
        if struck.count >= Self.mostAside { struck.removeAll() }
        return !struck.insert(user).inserted
    }

    mutating func setAside(_ user: Name, at now: Instant) {
        if aside.count >= Self.mostAside { aside.removeAll() }
        struck.remove(user)
        let length = aside[user].map { min($0.length * 2, firstPause * Self.growth) } ?? firstPause
        aside[user] = Pause(length: length, until: now + length)
    }

    /// Notes that users were written.
    mutating func noteWritten(_ users: [Name]) {
        guard !aside.isEmpty else { return }
        for user in users { aside[user] = nil }
    }
}
