/// Who may come back to one channel for what it missed, among clients that name no id. Who is owed what is in
/// `SessionBucket`.
struct HistorySessions {
    private var buckets: [HistoryKey: SessionBucket<HistorySession>] = [:]
    /// No session ends before this.
    private var nextEnd = Int64.max
    /// How many have ended and are kept.
    private var keptCount = 0

    /// Nobody is waited for.
    var isEmpty: Bool { keptCount == 0 }

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
    mutating func end(_ session: HistorySession, lostAt position: HistoryPosition?, until: Int64) {
        // Where it was not answered, a client that was here before has its session of before still.
        let isOwn = session.trace.isSettled || session.trace.evidence != .refs
        change(session.key) { bucket in
            guard isOwn, let position else { return bucket.remove(session) }
            bucket.lose(session, at: position, until: until)
        }
        nextEnd = min(nextEnd, until)
    }

    /// Live memberships that may be dead ones of the client that joins.
    func doubts(of trace: ClientTrace, _ key: HistoryKey, lacks: (HistorySession) -> Bool) -> [ClientTrace] {
        key.hasSubject ? buckets[key]?.doubts(of: trace, lacks: lacks) ?? [] : []
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
            owed = bucket.takeOver(for: trace, amongLive: hasAsked && key.hasSubject) {
                $0.proven(readers[$0.member.loop])
            }
        }
        return .earliest(of: owed.all)
    }

    mutating func forget(at now: Int64) {
        guard now >= nextEnd else { return }
        nextEnd = .max
        for key in Array(buckets.keys) {
            change(key) { $0.forget(until: now) }
            for one in buckets[key]?.ended ?? [] { nextEnd = min(nextEnd, one.until) }
        }
    }

    private mutating func change(_ key: HistoryKey, _ body: (inout SessionBucket<HistorySession>) -> Void) {
        var bucket = buckets.removeValue(forKey: key) ?? SessionBucket()
        keptCount -= bucket.ended.count
        body(&bucket)
        keptCount += bucket.ended.count
        if !bucket.isEmpty { buckets[key] = bucket }
    }
}
