package import Wire

/// The user that a read of rows counts for: a token's user, or all holders of such tokens if they name no user.
package struct RowUser: Hashable, Sendable {
    let role: Name
    let subject: Name?

    package init(role: Name, subject: Name?) {
        self.role = role
        self.subject = subject
    }
}

/// Chooses the next read: users take turns, each has one read under way at a time, and none has more read than its sockets
/// take.
///
/// A value; `RowReader` keeps it behind a lock.
package struct RowQueue<Reading> {

    fileprivate struct Share {
        var waiting: [Reading] = []
        var first = 0
        var isReading = 0
        var held = 0
        /// True if the user is in `ready`.
        var isReady = false

        var count: Int { waiting.count - first }
        var isIdle: Bool { count == 0 && isReading == 0 && held == 0 }

        mutating func takeNext() -> Reading {
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

    /// - Returns: false if there is no room for it.
    package mutating func addReading(_ reading: Reading, of user: RowUser) -> Bool {
        let most = scaledLimit(limits.waitingOfUser, of: user)
        guard waiting < limits.waiting, shares[user]?.count ?? 0 < most else { return false }
        shares[user, default: Share()].waiting.append(reading)
        waiting += 1
        updateReadiness(user)
        return true
    }

    /// Takes the next read, which is then under way; nil if there is none at present.
    package mutating func takeNext() -> Reading? {
        guard held < limits.held, firstReady < ready.count else { return nil }
        let user = ready[firstReady]
        firstReady += 1
        if firstReady > 32, firstReady * 2 > ready.count {
            ready.removeFirst(firstReady)
            firstReady = 0
        }
        shares[user]?.isReady = false
        guard let reading = shares[user]?.takeNext() else { return nil }
        shares[user]?.isReading += 1
        waiting -= 1
        updateReadiness(user)
        return reading
    }

    /// A read has finished, and this many bytes of it have yet to be taken.
    package mutating func finishReading(_ user: RowUser, holding bytes: Int) {
        shares[user]?.isReading -= 1
        shares[user]?.held += bytes
        held += bytes
        updateReadiness(user)
    }

    package mutating func releaseBytes(_ user: RowUser, _ bytes: Int) {
        shares[user]?.held -= bytes
        held -= bytes
        updateReadiness(user)
    }

    /// Removes and returns everything that waits.
    package mutating func removeAll() -> [Reading] {
        defer { self = RowQueue(limits) }
        return shares.values.flatMap { $0.waiting[$0.first...] }
    }

    /// Puts a user in line if something can be read for it.
    private mutating func updateReadiness(_ user: RowUser) {
        guard let share = shares[user] else { return }
        guard !share.isIdle else {
            shares[user] = nil
            return
        }
        let sessions = user.subject == nil ? max(1, limits.sessions - 1) : 1
        guard !share.isReady, share.count > 0, share.isReading < sessions,
            share.held < scaledLimit(limits.heldOfUser, of: user)
        else { return }
        shares[user]?.isReady = true
        ready.append(user)
    }

    /// Many people share tokens without a user.
    private func scaledLimit(_ limit: Int, of user: RowUser) -> Int { user.subject == nil ? limit * 20 : limit }
}

extension RowQueue: Sendable where Reading: Sendable {}
extension RowQueue.Share: Sendable where Reading: Sendable {}
