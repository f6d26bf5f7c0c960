import Wire

/// The clients that may come back to one channel for what they missed, among those that name no ID. `SessionBucket`
/// decides what each is owed.
struct HistorySessions {
    private var buckets: [HistoryKey: SessionBucket<HistorySession>] = [:]
    /// No session expires before this.
    private var nextEnd = Int64.max
    /// The number of ended sessions that are kept, by user.
    private var kept: [Int: Int] = [:]
    /// The positions of sessions that gave way to others of the same user, by a few steps of time (`SessionShares`).
    private var places: [Int: SessionBucket<HistorySession>] = [:]

    /// The maximum number of sessions kept for one user, whatever presence keys it uses. Tokens without a user belong
    /// to many people.
    private static let mostOfUser = 100
    private static let mostOfRole = 2_000

    /// True when no session is kept.
    var isEmpty: Bool { kept.isEmpty && places.isEmpty }

    /// The number of kept sessions, and of kept positions of sessions that gave way.
    var counts: (sessions: Int, places: Int) {
        (kept.values.reduce(0, +), places.values.reduce(0) { $0 + $1.ended.count })
    }

    mutating func addSession(_ session: HistorySession) {
        buckets[session.key, default: SessionBucket()].addSession(session)
    }

    /// Moves a member's session to the key of its new token.
    mutating func renewSession(_ session: HistorySession, _ key: HistoryKey, _ trace: ClientTrace) -> HistorySession {
        updateBucket(session.key) { $0.remove(session) }
        let renewed = session.renewed(key, trace)
        addSession(renewed)
        return renewed
    }

    /// Ends a membership's session; if the member was lost, its client may come back until `until`.
    ///
    /// - Parameter step: the spacing of the times until which positions of sessions that gave way are kept.
    mutating func endSession(
        _ session: HistorySession, lostAt position: HistoryPosition?, until: Int64, step: Int64 = 1, goneAt: Int? = nil
    ) {
        // If the join was never answered, a client that was here before still has its earlier session.
        let isOwn = session.trace.isSettled || session.trace.evidence != .refs
        updateBucket(session.key) { bucket in
            guard isOwn, let position else { return bucket.remove(session) }
            bucket.loseSession(session, at: position, until: until, goneAt: goneAt)
        }
        nextEnd = min(nextEnd, until)
        boundSessions(session.key, step)
    }

    /// If the user left too many sessions behind, makes the oldest one under this key give way. No client loses
    /// messages by that: every client of the user that comes back is sent what the session was owed.
    private mutating func boundSessions(_ key: HistoryKey, _ step: Int64) {
        let most = key.hasSubject ? Self.mostOfUser : Self.mostOfRole
        guard kept[key.user] ?? 0 > most else { return }
        var gone: SessionBucket<HistorySession>.Ended?
        updateBucket(key) { gone = $0.giveWay() }
        guard let gone, !gone.isTaken else { return }
        let until = (gone.end + step - 1) / step * step
        _ = places[key.user, default: SessionBucket()].keepMany(
            at: gone.position.forAnybody, until: until, goneAt: gone.goneAt)
    }

    /// Returns the position from which a member must start that may stand for sessions of its user that gave way; no
    /// later than `position`.
    func position(ofUserOf session: HistorySession, noLaterThan position: HistoryPosition?) -> HistoryPosition? {
        guard let bucket = places[session.key.user] else { return position }
        let others = bucket.ended.filter { $0.mayBe(of: session.trace) }.map(\.position)
        return .earliest(of: others + (position.map { [$0] } ?? []))
    }

    /// Returns live memberships that may be dead sockets of the joining client.
    func doubts(of trace: ClientTrace, _ key: HistoryKey, lacks: (HistorySession) -> Bool) -> [ClientTrace] {
        buckets[key]?.doubts(of: trace, hasUser: key.hasSubject, lacks: lacks) ?? []
    }

    /// Returns the position from which a join that names no ID must start; nil if it cannot have missed anything.
    ///
    /// - Parameters:
    ///   - hasAsked: whether live memberships were asked for a sign of life; if not, they are ignored.
    ///   - readers: each loop's progress over time.
    mutating func takeOver(
        _ key: HistoryKey, _ trace: ClientTrace, hasAsked: Bool, readers: [Int: HistoryReader]
    ) -> HistoryPosition? {
        guard buckets[key] != nil else { return nil }
        var owed = SessionBucket<HistorySession>.Owed()
        updateBucket(key) { bucket in
            owed = bucket.takeOver(for: trace, hasUser: key.hasSubject, amongLive: hasAsked) {
                $0.acknowledged(by: readers[$0.member.loop])
            }
        }
        return .earliest(of: owed.all)
    }

    mutating func removeExpired(at now: Int64) {
        guard now >= nextEnd else { return }
        nextEnd = .max
        for user in Array(places.keys) {
            places[user]?.ended.removeAll { $0.until <= now }
            if places[user]?.isEmpty == true { places[user] = nil }
            for one in places[user]?.ended ?? [] { nextEnd = min(nextEnd, one.until) }
        }
        for key in Array(buckets.keys) {
            updateBucket(key) { $0.removeExpired(until: now) }
            for one in buckets[key]?.ended ?? [] { nextEnd = min(nextEnd, one.until) }
        }
    }

    private mutating func updateBucket(_ key: HistoryKey, _ body: (inout SessionBucket<HistorySession>) -> Void) {
        var bucket = buckets.removeValue(forKey: key) ?? SessionBucket()
        let before = bucket.ended.count
        body(&bucket)
        if !bucket.isEmpty { buckets[key] = bucket }
        guard bucket.ended.count != before else { return }
        let count = (kept[key.user] ?? 0) - before + bucket.ended.count
        kept[key.user] = count > 0 ? count : nil
    }
}

/// The properties shared by two joins of one channel if one may take over from the other: the user and the sign-in, the
/// role, and the presence key given by the client.
///
/// Kept as 128 bits of hash. A collision by chance costs a repeated message and nothing else: every member of a channel
/// may read all of it.
struct HistoryKey: Hashable, Sendable {
    private let high: Int
    private let low: Int
    /// The same for all keys of a user, or of a role if the tokens name no user.
    let user: Int
    /// Without a user, all clients with the same request look alike.
    let hasSubject: Bool

    init(_ claims: Claims, presenceKey: String?) {
        func digest(_ seed: UInt8) -> Int {
            var hasher = Hasher()
            hasher.combine(seed)
            hasher.combine(claims.subject)
            hasher.combine(claims.session)
            hasher.combine(claims.role)
            hasher.combine(presenceKey.map { Name($0) })
            return hasher.finalize()
        }
        high = digest(0)
        low = digest(1)
        hasSubject = claims.subject != nil
        var hasher = Hasher()
        hasher.combine(claims.subject)
        hasher.combine(claims.role)
        user = hasher.finalize()
    }
}

/// A membership with history, from its join on.
///
/// **Thread**: the unsafe properties are accessed under the history store's lock, which makes them safe.
final class HistorySession: RecoverableSession, Sendable {
    typealias Position = HistoryPosition

    let key: HistoryKey
    let member: MemberID
    let trace: ClientTrace
    /// The position from which it would have to start again while nothing is acknowledged.
    nonisolated(unsafe) private var start: Int
    /// The position it was brought to before live messages.
    nonisolated(unsafe) private var liveFrom: Int
    /// The first ping whose answer covers what the member was sent since it joined; no ping before its join is
    /// answered.
    nonisolated(unsafe) private var firstPing = Int.max
    nonisolated(unsafe) private var isAlone = true

    init(key: HistoryKey, member: MemberID, trace: ClientTrace, at position: Int) {
        self.key = key
        self.member = member
        self.trace = trace
        start = position
        liveFrom = position
    }

    /// Records the answer to the join: the member is sent what follows `start`, and hears live messages from `liveFrom`
    /// on.
    func markAnswered(at start: Int, liveFrom: Int, firstPing: Int) {
        self.start = start
        self.liveFrom = liveFrom
        self.firstPing = firstPing
        trace.isSettled = true
    }

    /// Returns the position that the member has certainly received, given its loop's progress over time.
    func acknowledged(by reader: HistoryReader?) -> HistoryPosition {
        let last = trace.acknowledged.latest
        let position =
            last.serial >= firstPing ? max(liveFrom, reader?.position(before: last.at) ?? 0) : start
        return HistoryPosition(position: position, member: isAlone ? member : nil)
    }

    func mayStandForAnother() { isAlone = false }

    /// Returns the same member's session under its new token.
    func renewed(_ key: HistoryKey, _ trace: ClientTrace) -> HistorySession {
        let session = HistorySession(
            key: key, member: member, trace: trace, at: start)
        if self.trace.isSettled { session.markAnswered(at: start, liveFrom: liveFrom, firstPing: firstPing) }
        session.isAlone = isAlone
        return session
    }
}

/// The position that a member with history has certainly reached.
struct HistoryPosition: SessionPosition {
    let position: Int
    /// The member at this position, if it can be no other.
    let member: MemberID?

    var forAnybody: HistoryPosition { HistoryPosition(position: position, member: nil) }

    func isEarlier(than other: HistoryPosition) -> Bool { position < other.position }
}
