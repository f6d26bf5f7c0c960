/// A membership that leaves a session behind when it is lost.
protocol RecoverableSession: AnyObject {
    associatedtype Position: SessionPosition
    var trace: ClientTrace { get }
    /// Records that it may stand for another session as well (`SessionPosition.forAnybody`).
    func mayStandForAnother()
}

/// The position that a client has certainly reached.
protocol SessionPosition {
    /// Whether this position is before another.
    func isEarlier(than other: Self) -> Bool
    /// The same position without details that apply to this one client only.
    var forAnybody: Self { get }
    /// The earliest of several positions; of a single one, with all its details.
    static func earliest(of positions: [Self]) -> Self?
}

extension SessionPosition {
    static func earliest(of positions: [Self]) -> Self? {
        guard positions.count > 1 else { return positions.first }
        return positions.min { $0.isEarlier(than: $1) }?.forAnybody
    }
}

/// Clients that look alike: the live sessions, and those that were lost and may come back. These rules decide what a
/// client that states no position is sent, for row changes (`SessionRegistry`) and kept broadcasts (`HistorySessions`)
/// alike.
///
/// A membership that ends without a good-bye stays behind as a session, for the recovery window.
///
/// **Never less.** Nothing tells which of a user's clients is joining, and refs mean nothing between two sockets. So a
/// join is owed whatever is lacked by any session that may be its own: each that has ended, and each live one whose
/// socket does not answer when asked at that moment. The join starts at the earliest of their positions. A client that
/// turns out to be another one is sent some things that it did not miss: at least once.
///
/// A socket that its client has given up counts as live until its own loop has read that it is closed, and the client's
/// next join may be read before that. So live sessions count for clients without a user as well, which all look alike,
/// but only for a client that was certainly here before: a new one must not wait for strangers.
///
/// **Seldom twice.** A client that was certainly here before (`ClientTrace.Evidence`) came for one of the sessions
/// whose messages it was sent, so that one of them less has to be kept. It is unknown which; if the latest is dropped
/// each time, then for every client that is still away a session remains that is no later than its own, for as long as
/// its own would have been kept (`EndedSession.swift`). A client whose own session has expired uses up no other. If
/// clients restart their refs, only a sign-in that names the device is equally telling (`SessionClaim.counts`).
struct SessionBucket<Session: RecoverableSession> {
    struct Ended {
        var position: Session.Position
        /// Milliseconds, on the clock of the bucket's owner.
        var until: Int64
        /// Nil if the socket is unknown, as for sessions of the last process and for clients without a session.
        let acknowledged: AcknowledgementState?
        /// Stands for an unknown number of sessions, so that a claim does not use it up.
        var isMany = false
        var claims: [SessionClaim] = []
        /// The client's last ref, if it announced that it was going: only a client whose refs continue after it comes
        /// for the session.
        var goneAt: Int?
        /// The earliest time at which it may have been lost, in monotonic milliseconds; nil if unknown.
        var lostAt: Int64?
        /// The number of sessions in this bucket that were lost before it.
        var number = 0
        /// Positions of claimed sessions that it may be instead, with later and later ends (`EndedSession.swift`).
        var others: [SessionStand<Session.Position>] = []

        var isTaken: Bool { !isMany && claims.contains { $0.counts } }
        /// Any client of the key may come for it.
        var isAwaited: Bool { !isTaken && goneAt == nil }

        func mayBe(of trace: ClientTrace) -> Bool {
            guard let goneAt else { return !isTaken }
            return !isTaken && trace.evidence == .refs && trace.ref > goneAt
        }
    }

    /// The positions of the sessions that a join may have come for.
    struct Owed {
        var ended: [Session.Position] = []
        /// Sessions whose sockets are open but do not answer.
        var live: [Session.Position] = []
        /// The client came for a session that has expired.
        var isOverdue = false

        var all: [Session.Position] { ended + live }
        /// Whether nothing suggests that the client was here before.
        var isNothing: Bool { ended.isEmpty && live.isEmpty && !isOverdue }
    }

    private(set) var live: [Session] = []
    /// Ordered by end, earliest first.
    var ended: [Ended] = []
    /// Clients whose window was over before they came, by `goneAt`. They still come, but not for what others left.
    private(set) var overdue: [Int] = []
    private var losses = 0

    /// The maximum number of sessions kept for one key; anonymous clients share one. Beyond it, the earliest positions
    /// stay.
    private static var mostEnded: Int { 64 }
    /// If more sessions are suspect, none is asked for a sign of life.
    private static var mostAsked: Int { 16 }
    /// If more sessions are live, none is examined.
    private static var mostLookedAt: Int { 1024 }

    var isEmpty: Bool { live.isEmpty && ended.isEmpty }

    // MARK: Joins

    mutating func addSession(_ session: Session) {
        session.trace.place = live.count
        live.append(session)
    }

    mutating func addEnded(_ sessions: [Ended]) { ended += sessions }

    /// Returns live sessions that may be dead sockets of the joining client and must be asked for a sign of life before
    /// `takeOver`.
    ///
    /// - Parameters:
    ///   - hasUser: false if clients without a user all look alike.
    ///   - lacks: whether a session lacks any of what was passed on.
    func doubts(of trace: ClientTrace, hasUser: Bool, lacks: (Session) -> Bool) -> [ClientTrace] {
        guard hasUser || trace.evidence == .refs else { return [] }
        var doubts: [ClientTrace] = []
        // A client that was here before needs its own session told apart from all others.
        for session in live where isSuspect(session, for: trace) && (trace.evidence != .none || lacks(session)) {
            guard doubts.count < Self.mostAsked else { return [] }
            doubts.append(session.trace)
        }
        return doubts
    }

    private func isSuspect(_ session: Session, for trace: ClientTrace) -> Bool {
        let other = session.trace
        // A session that joined later is not an earlier socket. One with evidence that it was here before still has its
        // earlier session until it is settled.
        return other.moment < trace.moment && (other.isSettled || other.evidence != .refs)
            && other.acknowledged !== trace.acknowledged
            && !other.wasAlive(after: trace.moment) && !other.isGone
    }

    /// Determines what the joining client is owed, once suspect sockets were asked for a sign of life, and claims one
    /// of the kept sessions.
    ///
    /// - Parameters:
    ///   - hasUser: false if clients without a user all look alike.
    ///   - amongLive: false if no socket was asked for a sign of life.
    ///   - lowest: a position no later than that of any live session, for when they are too many to examine; nil if
    ///     none counts then.
    mutating func takeOver(
        for trace: ClientTrace, hasUser: Bool, amongLive: Bool = true, lowest: Session.Position? = nil,
        position: (Session) -> Session.Position
    ) -> Owed {
        // The common case, which must cost nothing: no other session is live or waiting.
        guard !ended.isEmpty || live.count > 1 || !overdue.isEmpty else { return Owed() }
        // Joins on one socket belong to one client.
        let own = ended.filter { $0.acknowledged === trace.acknowledged }
        if !own.isEmpty {
            ended.removeAll { $0.acknowledged === trace.acknowledged }
            return Owed(ended: own.map(\.position))
        }
        let free = ended.indices.filter { ended[$0].mayBe(of: trace) }
        var owed = Owed(ended: free.map { ended[$0].position })
        var suspects: [Session] = []
        if amongLive, hasUser || trace.evidence == .refs {
            if isCrowd {
                owed.live = lowest.map { [$0] } ?? []
            } else {
                suspects = live.filter { isSuspect($0, for: trace) }
                owed.live = suspects.map(position)
            }
        }
        guard trace.evidence != .none else { return owed }
        let wereAsked = !isCrowd && suspects.count <= Self.mostAsked
        // Without a user, it takes one of the sessions known to be lost, or their list would only grow.
        guard wereAsked || !hasUser else { return owed }
        if trace.evidence == .refs, let late = overdue.firstIndex(where: { $0 < trace.ref }) {
            overdue.remove(at: late)
            owed.isOverdue = true
        } else if wereAsked {
            claimSession(owed, free, suspects, for: trace, mayEndLive: hasUser)
        } else {
            claimSession(Owed(ended: owed.ended), free, [], for: trace, mayEndLive: false)
        }
        return owed
    }

    /// The live sessions are too many to examine at each join.
    var isCrowd: Bool { live.count > Self.mostLookedAt }

    /// - Parameter mayEndLive: false if the joining client may be a stranger, which can claim anything: a live session
    ///   that does not answer stays its client's.
    private mutating func claimSession(
        _ owed: Owed, _ free: [Int], _ suspects: [Session], for trace: ClientTrace, mayEndLive: Bool
    ) {
        let positions = owed.all
        let claim = SessionClaim(
            trace: trace, isCertain: trace.evidence == .refs, losses: losses, isAlone: positions.count == 1)
        let latest = positions.indices.max { positions[$0].isEarlier(than: positions[$1]) }
        if let latest, latest >= free.count {
            if mayEndLive { suspects[latest - free.count].trace.claims.append(claim) }
        } else if let latest, !ended[free[latest]].isMany {
            let place = free[latest]
            for index in free where index != place { ended[index].standIn(for: ended[place].stands) }
            if claim.isCertain { ended.remove(at: place) } else { ended[place].claims.append(claim) }
        }
        guard positions.count > 1 else { return }
        // Those that are left may stand for another of them, whose position is no earlier.
        for index in ended.indices { ended[index].position = ended[index].position.forAnybody }
        for suspect in suspects { suspect.mayStandForAnother() }
    }

    // MARK: Ends

    /// Removes a live session; nothing stays behind.
    mutating func remove(_ session: Session) {
        session.trace.markEnded()
        let place = session.trace.place
        guard place < live.count, live[place] === session else { return }
        let last = live.removeLast()
        if last !== session {
            last.trace.place = place
            live[place] = last
        }
    }

    /// Turns a live session that was lost into an ended one.
    ///
    /// - Parameters:
    ///   - goneAt: the client's last ref, if it announced that it was going.
    ///   - lostAt: the time of the loss, in monotonic milliseconds.
    mutating func loseSession(
        _ session: Session, at position: Session.Position, until: Int64, goneAt: Int? = nil, lostAt: Int64? = nil
    ) {
        remove(session)
        let trace = session.trace
        // Clients that joined while it still answered did not come for it.
        let claims = trace.claims.filter { !trace.wasAlive(after: $0.trace.moment) }
        var isStoodFor = false
        if let claimed = claims.map(\.losses).max() {
            // A session lost since then is not the one that was claimed.
            for index in ended.indices where ended[index].number <= claimed && !ended[index].isTaken {
                ended[index].standIn(for: [SessionStand(position: position, until: until)])
                isStoodFor = isStoodFor || ended[index].isAwaited
            }
        }
        if let claim = claims.first(where: \.isCertain) {
            // Another session that it may be instead is gone: its client comes too late, or has come.
            guard !claim.isAlone, !isStoodFor, !overdue.isEmpty else { return }
            overdue.removeLast()
        }
        losses += 1
        ended.append(
            Ended(
                position: position, until: until, acknowledged: trace.acknowledged,
                claims: claims.filter { !$0.isCertain }, goneAt: goneAt, lostAt: lostAt, number: losses))
        thinOut()
    }

    /// Drops the sessions whose window is over.
    mutating func removeExpired(until time: Int64) {
        for index in ended.indices { ended[index].moveOn(at: time) }
        for one in ended where one.until <= time && !one.isTaken { noteOverdue(one) }
        ended.removeAll { $0.until <= time }
    }

    /// Counts the client of a dropped session as overdue, because it may still come.
    mutating func noteOverdue(_ session: Ended) {
        addOverdue(Array(repeating: session.goneAt ?? 0, count: session.isMany ? Self.mostEnded : 1))
    }

    /// Adds clients, by `goneAt`, whose window is over and that must not take what others left.
    mutating func addOverdue(_ clients: [Int]) {
        overdue += clients
        if overdue.count > Self.mostEnded { overdue = Array(overdue.sorted().prefix(Self.mostEnded)) }
    }

    /// Counts one overdue client as having come, on another hub.
    ///
    /// - Returns: false if there is none.
    mutating func countLateClient() -> Bool { overdue.popLast() != nil }

    private mutating func thinOut() {
        guard ended.count > Self.mostEnded else { return }
        if let taken = ended.firstIndex(where: \.isTaken) {
            ended.remove(at: taken)
            return
        }
        let order = ended.indices.sorted { ended[$0].position.isEarlier(than: ended[$1].position) }
        guard let earliest = order.first, let latest = order.last else { return }
        // The session also stands for the removed one now, so it is no longer known when all clients are back.
        ended[earliest].position = ended[earliest].position.forAnybody
        ended[earliest].isMany = true
        let refs = [earliest, latest].compactMap { ended[$0].goneAt }
        ended[earliest].goneAt = refs.count == 2 ? refs.min() : nil
        ended[earliest].standIn(for: ended[latest].stands)
        ended.remove(at: latest)
    }
}
