package import Wire

/// As whose a reading of rows counts: a user's, or without one those of all who bring such tokens.
package struct RowUser: Hashable, Sendable {
    let role: Name
    let subject: Name?

    package init(role: Name, subject: Name?) {
        self.role = role
        self.subject = subject
    }
}

/// Whose reading is next: users take turns, one reading of each is under way at a time, and nobody has more read than is taken.
///
/// A value; `RowReader` keeps it behind a lock.
package struct RowQueue<Reading> {

    fileprivate struct Share {
        var waiting: [Reading] = []
        var first = 0
        var isReading = 0
        var held = 0
        /// It stands in `ready`.
        var isReady = false

        var count: Int { waiting.count - first }
        var isIdle: Bool { count == 0 && isReading == 0 && held == 0 }

        mutating func take() -> Reading {
            defer {
                first += 1
                if first > 32, first * 2 > waiting.count {
                    waiting.removeFirst(first)
                    first = 0
                }
            }
            return waiting[first]
        }
    }

    private let limits: RowLimits
    private var shares: [RowUser: Share] = [:]
    /// Users for whom something could be read at once, in the order of their turns.
    private var ready: [RowUser] = []
    private var firstReady = 0
    package private(set) var waiting = 0
    package private(set) var held = 0

    package init(_ limits: RowLimits) { self.limits = limits }

    /// - Returns: false where there is no room for it.
    package mutating func add(_ reading: Reading, of user: RowUser) -> Bool {
        let most = most(limits.waitingOfUser, of: user)
        guard waiting < limits.waiting, shares[user]?.count ?? 0 < most else { return false }
        shares[user, default: Share()].waiting.append(reading)
        waiting += 1
        settle(user)
        return true
    }

    /// The next reading, which is under way from here on; nil where there is none for now.
    package mutating func next() -> Reading? {
        guard held < limits.held, firstReady < ready.count else { return nil }
        let user = ready[firstReady]
        firstReady += 1
        if firstReady > 32, firstReady * 2 > ready.count {
            ready.removeFirst(firstReady)
            firstReady = 0
        }
        shares[user]?.isReady = false
        guard let reading = shares[user]?.take() else { return nil }
        shares[user]?.isReading += 1
        waiting -= 1
        settle(user)
        return reading
    }

    /// A reading is over, and so many bytes of it are yet to be taken.
    package mutating func isRead(_ user: RowUser, holding bytes: Int) {
        shares[user]?.isReading -= 1
        shares[user]?.held += bytes
        held += bytes
        settle(user)
    }

    package mutating func isTaken(_ user: RowUser, _ bytes: Int) {
        shares[user]?.held -= bytes
        held -= bytes
        settle(user)
    }

    /// Takes all that waits.
    package mutating func removeAll() -> [Reading] {
        defer { self = RowQueue(limits) }
        return shares.values.flatMap { $0.waiting[$0.first...] }
    }

    /// Lets a user stand in line where something can be read for it.
    private mutating func settle(_ user: RowUser) {
        guard let share = shares[user] else { return }
        guard !share.isIdle else {
            shares[user] = nil
            return
        }
        let sessions = user.subject == nil ? max(1, limits.sessions - 1) : 1
        guard !share.isReady, share.count > 0, share.isReading < sessions,
            share.held < most(limits.heldOfUser, of: user)
        else { return }
        shares[user]?.isReady = true
        ready.append(user)
    }

    /// Tokens without a user are many people's.
    private func most(_ limit: Int, of user: RowUser) -> Int { user.subject == nil ? limit * 20 : limit }
}

extension RowQueue: Sendable where Reading: Sendable {}
extension RowQueue.Share: Sendable where Reading: Sendable {}
