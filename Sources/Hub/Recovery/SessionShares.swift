/// Limits the number of waiting sessions per user, and selects those that give way: one user's clients may come and go
/// as often as they like without taking memory or rows of the database from others.
///
/// Sessions that give way are not lost: for each user, positions no later than theirs are kept, in a few steps of time.
/// A client of that user that joins within the window is sent what came since, more than it missed. A value, kept under
/// the registry's lock.
struct SessionShares {
    /// The share of one user's keys, or of a role's if the tokens name no user.
    private struct Share {
        var size = 0
        /// Keys in the order in which sessions ended; those of sessions taken over stay in it until it is tidied.
        var order: [RecoveryKey] = []
        var first = 0
    }

    private var shares: [UInt64: Share] = [:]
    private let most: Int
    /// Tokens without a user belong to many people.
    private static let roleFactor = 20
    /// The size of a session without cursors, in bytes; this many bytes of cursors count as one more.
    private static let unit = 1024
    /// The number of steps that the window is divided into.
    static let steps: Int64 = 8

    init(most: Int) { self.most = most }

    /// Returns how much a session counts.
    static func size(of session: SessionBucket<LiveSession>.Ended) -> Int {
        let others = session.others.reduce(0) { $0 + $1.position.point.cursorBytes }
        return 1 + (session.position.point.cursorBytes + (session.position.partway?.utf8.count ?? 0) + others) / unit
    }

    mutating func changeSize(_ user: UInt64, by size: Int) {
        shares[user, default: Share()].size += size
        if shares[user]?.size ?? 0 <= 0 { shares[user] = nil }
    }

    /// Records that a session of the key has ended.
    ///
    /// - Returns: whether the order must be tidied.
    mutating func recordEnd(_ key: RecoveryKey) -> Bool {
        shares[key.user]?.order.append(key)
        return shares[key.user].map { $0.order.count - $0.first > 2 * $0.size + 64 } ?? false
    }

    func order(of key: RecoveryKey) -> ArraySlice<RecoveryKey> {
        shares[key.user].map { $0.order[$0.first...] } ?? []
    }

    mutating func tidyOrder(_ key: RecoveryKey, to order: [RecoveryKey]) {
        shares[key.user]?.order = order
        shares[key.user]?.first = 0
    }

    /// Returns the key whose session has to give way; nil if there is room.
    mutating func nextKey(of key: RecoveryKey) -> RecoveryKey? {
        let most = key.hasSubject ? most : most * Self.roleFactor
        guard let share = shares[key.user], share.size > most, share.first < share.order.count else { return nil }
        if share.first > 1024, share.first * 2 > share.order.count {
            shares[key.user]?.order.removeFirst(share.first + 1)
            shares[key.user]?.first = 0
        } else {
            shares[key.user]?.first += 1
        }
        return share.order[share.first]
    }
}

extension SessionRegistry {
    /// Updates the size of a key's sessions. Called with every change of them.
    static func updateSize(_ key: RecoveryKey, _ state: inout State) {
        guard let bucket = state.buckets[key], bucket.user != 0 else { return }
        let size = bucket.sessions.ended.reduce(0) { $0 + SessionShares.size(of: $1) }
        guard size != bucket.size else { return }
        state.shares.changeSize(bucket.user, by: size - bucket.size)
        state.buckets[key]?.size = size
    }

    /// Makes the user's oldest sessions give way if there are too many.
    static func boundShare(_ key: RecoveryKey, _ window: Int64, _ state: inout State) {
        if state.shares.recordEnd(key) {
            var left: [RecoveryKey: Int] = [:]
            let order = state.shares.order(of: key).filter { key in
                let count = left[key] ?? state.buckets[key]?.sessions.ended.count ?? 0
                left[key] = count - 1
                return count > 0
            }
            state.shares.tidyOrder(key, to: order)
        }
        while let other = state.shares.nextKey(of: key) {
            guard let gone = state.buckets[other]?.sessions.giveWay() else { continue }
            state.givenWay += 1
            recordChange(other, &state)
            guard let point = gone.position.point.withoutCursors else { continue }
            let step = max(1, window / SessionShares.steps)
            let until = (gone.end + step - 1) / step * step
            let isNew = state.buckets[key.ofUser, default: Bucket()].sessions.keepMany(
                at: RecoveryPosition(point: point), until: until, goneAt: gone.goneAt)
            if isNew { state.userEnds[until, default: []].append(key.ofUser) }
            recordChange(key.ofUser, &state)
        }
    }

    /// Returns positions of sessions that gave way and may have been those of the member's client.
    static func places(ofUserOf session: LiveSession, _ state: State) -> [RecoveryPosition] {
        guard let bucket = state.buckets[session.key.ofUser] else { return [] }
        return bucket.sessions.ended.filter { $0.mayBe(of: session.trace) }.map(\.position)
    }

    /// The number of sessions that gave way to others of the same user.
    package var sessionsGivenWay: Int { state.withLock { $0.givenWay } }
}

extension SessionBucket {
    /// Removes the session that ended first. If its client still comes, it takes no other client's session.
    mutating func giveWay() -> Ended? {
        guard !ended.isEmpty else { return nil }
        let gone = ended.removeFirst()
        if !gone.isTaken { noteOverdue(gone) }
        return gone
    }

    /// Keeps a position that stands for an unknown number of sessions; those with the same end are merged, separately
    /// for clients that announced that they were going.
    ///
    /// - Returns: whether the position is new.
    mutating func keepMany(at position: Session.Position, until: Int64, goneAt: Int?) -> Bool {
        let known = ended.firstIndex { $0.until == until && $0.isMany && ($0.goneAt == nil) == (goneAt == nil) }
        guard let known else {
            ended.append(Ended(position: position, until: until, acknowledged: nil, isMany: true, goneAt: goneAt))
            return true
        }
        ended[known].position = .earliest(of: [ended[known].position, position]) ?? position
        ended[known].goneAt = goneAt.flatMap { ref in ended[known].goneAt.map { min($0, ref) } }
        return false
    }
}

extension RecoveryPoint {
    /// The size of cursors from clients, which may be long.
    fileprivate var cursorBytes: Int {
        switch self {
        case .mark, .restart: 0
        case .cursor(let text), .snapshot(let text), .restored(let text): text.utf8.count
        case .peer(let cursor, let snapshot): cursor.utf8.count + snapshot.utf8.count
        case .earliest(let some): some.reduce(0) { $0 + $1.cursorBytes }
        }
    }

    /// A client that came with a cursor brings it again.
    fileprivate var withoutCursors: RecoveryPoint? {
        switch self {
        case .cursor: nil
        case .earliest(let some): .earliest(of: some.compactMap(\.withoutCursors))
        case .mark, .restart, .restored, .snapshot, .peer: self
        }
    }
}
