import Wire

/// Who may come back to one channel for what it missed, among clients that name no id. Who is owed what is in
/// `SessionBucket`.
struct HistorySessions {
    private var buckets: [HistoryKey: SessionBucket<HistorySession>] = [:]
    /// No session ends before this.
    private var nextEnd = Int64.max
    /// How many have ended and are kept, of each user.
    private var kept: [Int: Int] = [:]
    /// Where sessions of a user stood that gave way to others of the same user, in a few steps of time (`SessionShares`).
    private var places: [Int: SessionBucket<HistorySession>] = [:]

    /// Of one user so many sessions are kept, whatever presence keys it comes with. Tokens without a user are many people's.
    private static let mostOfUser = 100
    private static let mostOfRole = 2_000

    /// Nobody is waited for.
    var isEmpty: Bool { kept.isEmpty && places.isEmpty }

    /// How many are kept, and how many places in which sessions gave way.
    var counts: (sessions: Int, places: Int) {
        (kept.values.reduce(0, +), places.values.reduce(0) { $0 + $1.ended.count })
    }

    mutating func enter(_ session: HistorySession) {
        buckets[session.key, default: SessionBucket()].add(session)
    }

    /// A member's token is one of somebody else from here on.
    mutating func renew(_ session: HistorySession, _ key: HistoryKey, _ trace: ClientTrace) -> HistorySession {
        change(session.key) { $0.remove(session) }
        let renewed = session.renewed(key, trace)
        enter(renewed)
        return renewed
    }

    /// Takes a membership out; one that was lost may come back until `until`.
    ///
    /// - Parameter step: the moments until which places are kept of sessions that gave way are so far apart.
    mutating func end(
        _ session: HistorySession, lostAt position: HistoryPosition?, until: Int64, step: Int64 = 1, goneAt: Int? = nil
    ) {
        // Where it was not answered, a client that was here before has its session of before still.
        let isOwn = session.trace.isSettled || session.trace.evidence != .refs
        change(session.key) { bucket in
            guard isOwn, let position else { return bucket.remove(session) }
            bucket.lose(session, at: position, until: until, goneAt: goneAt)
        }
        nextEnd = min(nextEnd, until)
        bound(session.key, step)
    }

    /// Where the user has left too many behind, the oldest under this key gives way: nobody is denied what it may have missed, and
    /// whoever comes of that user is sent it.
    private mutating func bound(_ key: HistoryKey, _ step: Int64) {
        let most = key.hasSubject ? Self.mostOfUser : Self.mostOfRole
        guard kept[key.user] ?? 0 > most else { return }
        var gone: SessionBucket<HistorySession>.Ended?
        change(key) { gone = $0.giveWay() }
        guard let gone, !gone.isTaken else { return }
        let until = (gone.end + step - 1) / step * step
        _ = places[key.user, default: SessionBucket()].keepMany(
            at: gone.position.forAnybody, until: until, goneAt: gone.goneAt)
    }

    /// Where a member has to start that may stand for sessions of its user which gave way; no later than `position`.
    func position(ofUserOf session: HistorySession, noLaterThan position: HistoryPosition?) -> HistoryPosition? {
        guard let bucket = places[session.key.user] else { return position }
        let others = bucket.ended.filter { $0.mayBe(of: session.trace) }.map(\.position)
        return .earliest(of: others + (position.map { [$0] } ?? []))
    }

    /// Live memberships that may be dead ones of the client that joins.
    func doubts(of trace: ClientTrace, _ key: HistoryKey, lacks: (HistorySession) -> Bool) -> [ClientTrace] {
        buckets[key]?.doubts(of: trace, hasUser: key.hasSubject, lacks: lacks) ?? []
    }

    /// Where a join has to start that names no id; nil where it can have missed nothing.
    ///
    /// - Parameters:
    ///   - hasAsked: whether live memberships were asked whether they live; else they are not looked at.
    ///   - readers: how far each loop was when.
    mutating func takeOver(
        _ key: HistoryKey, _ trace: ClientTrace, hasAsked: Bool, readers: [Int: HistoryReader]
    ) -> HistoryPosition? {
        guard buckets[key] != nil else { return nil }
        var owed = SessionBucket<HistorySession>.Owed()
        change(key) { bucket in
            owed = bucket.takeOver(for: trace, hasUser: key.hasSubject, amongLive: hasAsked) {
                $0.acknowledged(by: readers[$0.member.loop])
            }
        }
        return .earliest(of: owed.all)
    }

    mutating func forget(at now: Int64) {
        guard now >= nextEnd else { return }
        nextEnd = .max
        for user in Array(places.keys) {
            places[user]?.ended.removeAll { $0.until <= now }
            if places[user]?.isEmpty == true { places[user] = nil }
            for one in places[user]?.ended ?? [] { nextEnd = min(nextEnd, one.until) }
        }
        for key in Array(buckets.keys) {
            change(key) { $0.forget(until: now) }
            for one in buckets[key]?.ended ?? [] { nextEnd = min(nextEnd, one.until) }
        }
    }

    private mutating func change(_ key: HistoryKey, _ body: (inout SessionBucket<HistorySession>) -> Void) {
        var bucket = buckets.removeValue(forKey: key) ?? SessionBucket()
        let before = bucket.ended.count
        body(&bucket)
        if !bucket.isEmpty { buckets[key] = bucket }
        guard bucket.ended.count != before else { return }
        let count = (kept[key.user] ?? 0) - before + bucket.ended.count
        kept[key.user] = count > 0 ? count : nil
    }
}

/// What two joins of one channel have in common if one may take over from the other: the user and the sign-in, the role, and
/// the presence key that the client gave.
///
/// Kept as 128 bits of hash. Two keys that collide by chance cost a repeated message and nothing else: whoever is in a
/// channel may read all of it.
struct HistoryKey: Hashable, Sendable {
    private let high: Int
    private let low: Int
    /// The same for all keys of the user, or of all of a role whose tokens name none.
    let user: Int
    /// Without a user, all who ask for the same look alike.
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
/// **Thread**: the unsafe properties are read and written under the history store's lock, which is what makes them safe.
final class HistorySession: RecoverableSession, Sendable {
    typealias Position = HistoryPosition

    let key: HistoryKey
    let member: MemberID
    let trace: ClientTrace
    /// Where it would have to start again while nothing is acknowledged.
    nonisolated(unsafe) private var start: Int
    /// Up to where it was brought before what comes live.
    nonisolated(unsafe) private var liveFrom: Int
    /// The first ping whose answer is about what it was sent since it joined; none before its join is answered.
    nonisolated(unsafe) private var firstPing = Int.max
    nonisolated(unsafe) private var isAlone = true

    init(key: HistoryKey, member: MemberID, trace: ClientTrace, at position: Int) {
        self.key = key
        self.member = member
        self.trace = trace
        start = position
        liveFrom = position
    }

    /// Its join is answered: it is sent what comes behind `start`, and from `liveFrom` on hears what comes live.
    func settles(at start: Int, liveFrom: Int, firstPing: Int) {
        self.start = start
        self.liveFrom = liveFrom
        self.firstPing = firstPing
        trace.isSettled = true
    }

    /// What it has certainly received, given how far its loop was when.
    func acknowledged(by reader: HistoryReader?) -> HistoryPosition {
        let last = trace.acknowledged.latest
        let position =
            last.serial >= firstPing ? max(liveFrom, reader?.position(before: last.at) ?? 0) : start
        return HistoryPosition(position: position, member: isAlone ? member : nil)
    }

    func mayStandForAnother() { isAlone = false }

    /// The same member's, whose token is one of somebody else from here on.
    func renewed(_ key: HistoryKey, _ trace: ClientTrace) -> HistorySession {
        let session = HistorySession(
            key: key, member: member, trace: trace, at: start)
        if self.trace.isSettled { session.settles(at: start, liveFrom: liveFrom, firstPing: firstPing) }
        session.isAlone = isAlone
        return session
    }
}

/// How far a member with history certainly is.
struct HistoryPosition: SessionPosition {
    let position: Int
    /// Who stands there, where it can be nobody else.
    let member: MemberID?

    var forAnybody: HistoryPosition { HistoryPosition(position: position, member: nil) }

    func isEarlier(than other: HistoryPosition) -> Bool { position < other.position }
}
