import Wire

/// Who holds up telling the application of the others: a user whose row is locked, or for whom the application's statement ends the
/// session that runs it.
///
/// What was held up twice in a row is told of one by one. A user who holds up the others by himself is set aside, and tried again by
/// himself, after pauses that grow. Outlives sessions; confined to one thread. Time is passed in.
struct UserTrials {
    typealias Instant = ContinuousClock.Instant

    private struct Pause {
        var length: Duration
        var until: Instant
    }

    /// How many times in a row a batch was held up.
    private var holdUps = 0
    /// Users for whom a session was lost, once.
    private var struck: Set<Name> = []
    private var aside: [Name: Pause] = [:]
    private let firstPause: Duration

    private static let mostHoldUps = 2
    /// The longest pause is so many times the first.
    private static let growth = 64
    /// More are not remembered: each has cost a wait, or a session.
    private static let mostAside = 10_000

    init(firstPause: Duration) { self.firstPause = firstPause }

    /// Whether all users are told of one by one.
    var isApart: Bool { holdUps >= Self.mostHoldUps }

    /// Nobody is set aside.
    var isEmpty: Bool { aside.isEmpty }

    mutating func heldUp() { holdUps = min(holdUps + 1, Self.mostHoldUps) }

    /// A batch went through, but for those who were set aside.
    mutating func passed() {
        holdUps = 0
        struck.removeAll()
    }

    /// Whether a user who was set aside is to be tried again; nil for all others.
    func isDue(_ user: Name, at now: Instant) -> Bool? { aside[user].map { $0.until <= now } }

    /// A session was lost when a user was told of alone.
    ///
    /// - Returns: whether that was the second time; the first may be a chance.
    mutating func strike(_ user: Name) -> Bool {
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

    /// Users were told of.
    mutating func told(_ users: [Name]) {
        guard !aside.isEmpty else { return }
        for user in users { aside[user] = nil }
    }
}
