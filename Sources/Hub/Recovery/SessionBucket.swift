/// A membership that leaves a session behind when it is lost.
protocol RecoverableSession: AnyObject {
    associatedtype Position: SessionPosition
    var trace: ClientTrace { get }
    /// It may stand for another session from here on (`SessionPosition.forAnybody`).
    func mayStandForAnother()
}

/// How far a client certainly is.
protocol SessionPosition {
    /// Whether it lies further back.
    func isEarlier(than other: Self) -> Bool
    /// The same without what is true of this one client alone.
    var forAnybody: Self { get }
    /// The earliest of several; where there is one, all that is known of it.
    static func earliest(of positions: [Self]) -> Self?
}

extension SessionPosition {
    static func earliest(of positions: [Self]) -> Self? {
        guard positions.count > 1 else { return positions.first }
        return positions.min { $0.isEarlier(than: $1) }?.forAnybody
    }
}

/// Those who look alike: who is here, and who was lost and may come back. The rules by which a client that names no place of
/// its own is sent what it missed, for row changes (`SessionRegistry`) and for kept broadcasts (`HistorySessions`) alike.
///
/// A membership that ends without a good-bye stays behind as a session, for the recovery window.
///
/// **Never less.** Nothing tells which of a user's clients joins, and refs tell nothing between two sockets. So a join is
/// owed what any session lacks that may be its own: each that has ended, and each live one whose socket does not answer when
/// it is asked at that moment. It gets the earliest position of them all. Who turns out to be somebody else is sent some
/// things that it did not miss: at least once.
///
/// A socket that its client has given up is live until its own loop has read that it is closed, and the client's next join may
/// be read before. So live ones count for clients without a user, too, who all look alike, but only for one that was certainly
/// here before: what is new is not to wait for strangers.
///
/// **Seldom twice.** A client that was certainly here before (`ClientTrace.Evidence`) came for one of the sessions that it was
/// brought something for, so that one of them less has to be kept. Which one nobody knows; if it is always the latest, then
/// for every client that is still away a session is left that lies no later than its own, for as long as its own would have
/// been (`EndedSession.swift`). Nothing is given up for those who come when their own session is forgotten. Where clients begin
/// their refs anew, only a sign-in that names the device tells as much (`SessionClaim.counts`).
struct SessionBucket<Session: RecoverableSession> {
    struct Ended {
        var position: Session.Position
        /// Milliseconds, by the clock of whoever keeps the bucket.
        var until: Int64
        /// Of the last process's sessions and those of clients without one nobody knows the socket.
        let acknowledged: AcknowledgementState?
        /// It stands for many that nobody counted, so that none of them less has to be kept.
        var isMany = false
        var claims: [SessionClaim] = []
        /// Its client said that it goes, by when its refs had come to this: only one comes for it whose refs go on behind it.
        var goneAt: Int?
        /// No earlier than when it was lost, in monotonic milliseconds; nil where nobody knows.
        var lostAt: Int64?
        /// How many were lost before it, in this bucket.
        var number = 0
        /// Where those stood that were claimed and that it may be instead, until later and later moments (`EndedSession.swift`).
        var others: [SessionStand<Session.Position>] = []

        var isTaken: Bool { !isMany && claims.contains { $0.counts } }
        /// Anybody may come for it.
        var isAwaited: Bool { !isTaken && goneAt == nil }

        func mayBe(of trace: ClientTrace) -> Bool {
            guard let goneAt else { return !isTaken }
            return !isTaken && trace.evidence == .refs && trace.ref > goneAt
        }
    }

    /// Where those stand for whom a join may have come.
    struct Owed {
        var ended: [Session.Position] = []
        /// These sockets are open, and do not answer.
        var live: [Session.Position] = []
        /// It came for one that is kept no longer.
        var isOverdue = false

        var all: [Session.Position] { ended + live }
        /// It was not here before, as far as anybody knows.
        var isNothing: Bool { ended.isEmpty && live.isEmpty && !isOverdue }
    }

    private(set) var live: [Session] = []
    /// Oldest end first.
    var ended: [Ended] = []
    /// Those for whom the window was over before they came, by `goneAt`. They come all the same, and not for what others left.
    private(set) var overdue: [Int] = []
    private var losses = 0

    /// Sessions kept for one key; anonymous clients share one. Of more, the earliest positions stay.
    private static var mostEnded: Int { 64 }
    /// Of more none is asked whether it lives.
    private static var mostAsked: Int { 16 }
    /// Of more none is looked at.
    private static var mostLookedAt: Int { 1024 }

    var isEmpty: Bool { live.isEmpty && ended.isEmpty }

    // MARK: Joins

    mutating func add(_ session: Session) {
        session.trace.place = live.count
        live.append(session)
    }

    mutating func add(_ sessions: [Ended]) { ended += sessions }

    /// Live sessions that may be dead ones of the client that joins: whether they live is to be asked before `takeOver`.
    ///
    /// - Parameters:
    ///   - hasUser: false where all who have none look alike.
    ///   - lacks: whether somebody who stands there lacks anything of what was handed on.
    func doubts(of trace: ClientTrace, hasUser: Bool, lacks: (Session) -> Bool) -> [ClientTrace] {
        guard hasUser || trace.evidence == .refs else { return [] }
        var doubts: [ClientTrace] = []
        // Of a client that was here before, the one that is its own is to be told from all others.
        for session in live where isSuspect(session, for: trace) && (trace.evidence != .none || lacks(session)) {
            guard doubts.count < Self.mostAsked else { return [] }
            doubts.append(session.trace)
        }
        return doubts
    }

    private func isSuspect(_ session: Session, for trace: ClientTrace) -> Bool {
        let other = session.trace
        // Who joined later is no socket of before. And who was known for one that was here before has its session of
        // before until it is settled.
        return other.moment < trace.moment && (other.isSettled || other.evidence != .refs)
            && other.acknowledged !== trace.acknowledged
            && !other.wasAlive(after: trace.moment) && !other.isGone
    }

    /// What the joining client is owed, once those that may be its own were asked whether they live; and what is said by
    /// that of the sessions that are kept.
    ///
    /// - Parameters:
    ///   - hasUser: false where all who have none look alike.
    ///   - amongLive: false where none was asked whether it lives.
    ///   - lowest: where live ones are too many to be looked at, a position no later than any of theirs; nil where none counts then.
    mutating func takeOver(
        for trace: ClientTrace, hasUser: Bool, amongLive: Bool = true, lowest: Session.Position? = nil,
        position: (Session) -> Session.Position
    ) -> Owed {
        // Most joins, so that they cost nothing: nobody else is there or away.
        guard !ended.isEmpty || live.count > 1 || !overdue.isEmpty else { return Owed() }
        // Joins of one socket are one client's.
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
        // Who has no user takes one of those that are known to be lost, or the list of them would only grow.
        guard wereAsked || !hasUser else { return owed }
        if trace.evidence == .refs, let late = overdue.firstIndex(where: { $0 < trace.ref }) {
            overdue.remove(at: late)
            owed.isOverdue = true
        } else if wereAsked {
            claim(owed, free, suspects, for: trace, mayEndLive: hasUser)
        } else {
            claim(Owed(ended: owed.ended), free, [], for: trace, mayEndLive: false)
        }
        return owed
    }

    /// They are too many to be looked at for each join.
    var isCrowd: Bool { live.count > Self.mostLookedAt }

    /// - Parameter mayEndLive: false where the client that joins may be a stranger, who says what he likes: a live session that does
    ///   not answer stays its client's.
    private mutating func claim(
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
        // What is left may stand for another of them, which lies no earlier.
        for index in ended.indices { ended[index].position = ended[index].position.forAnybody }
        for suspect in suspects { suspect.mayStandForAnother() }
    }

    // MARK: Ends

    /// Takes a live session out; nothing stays behind.
    mutating func remove(_ session: Session) {
        session.trace.ends()
        let place = session.trace.place
        guard place < live.count, live[place] === session else { return }
        let last = live.removeLast()
        if last !== session {
            last.trace.place = place
            live[place] = last
        }
    }

    /// A session was lost, and stays behind.
    ///
    /// - Parameters:
    ///   - goneAt: where its client said that it goes.
    ///   - lostAt: when that is, in monotonic milliseconds.
    mutating func lose(
        _ session: Session, at position: Session.Position, until: Int64, goneAt: Int? = nil, lostAt: Int64? = nil
    ) {
        remove(session)
        let trace = session.trace
        // Who joined while it answered did not come for it.
        let claims = trace.claims.filter { !trace.wasAlive(after: $0.trace.moment) }
        var isStoodFor = false
        if let claimed = claims.map(\.losses).max() {
            // Who was lost since is not the one that came.
            for index in ended.indices where ended[index].number <= claimed && !ended[index].isTaken {
                ended[index].standIn(for: [SessionStand(position: position, until: until)])
                isStoodFor = isStoodFor || ended[index].isAwaited
            }
        }
        if let claim = claims.first(where: \.isCertain) {
            // Another that it may be instead is not kept any more: that one's client comes too late, or came.
            guard !claim.isAlone, !isStoodFor, !overdue.isEmpty else { return }
            overdue.removeLast()
        }
        losses += 1
        ended.append(
            Ended(
                position: position, until: until, acknowledged: trace.acknowledged,
                claims: claims.filter { !$0.isCertain }, goneAt: goneAt, lostAt: lostAt, number: losses))
        thin()
    }

    /// Forgets those whose window is over.
    mutating func forget(until time: Int64) {
        for index in ended.indices { ended[index].moveOn(at: time) }
        for one in ended where one.until <= time && !one.isTaken { noteOverdue(one) }
        ended.removeAll { $0.until <= time }
    }

    /// A session is kept no longer, and its client may come yet.
    mutating func noteOverdue(_ session: Ended) {
        areOverdue(Array(repeating: session.goneAt ?? 0, count: session.isMany ? Self.mostEnded : 1))
    }

    /// Clients come for nothing that others left, by `goneAt`: for them the window was over.
    mutating func areOverdue(_ clients: [Int]) {
        overdue += clients
        if overdue.count > Self.mostEnded { overdue = Array(overdue.sorted().prefix(Self.mostEnded)) }
    }

    /// One of them came, elsewhere.
    ///
    /// - Returns: false where there is none.
    mutating func hasComeLate() -> Bool { overdue.popLast() != nil }

    private mutating func thin() {
        guard ended.count > Self.mostEnded else { return }
        if let taken = ended.firstIndex(where: \.isTaken) {
            ended.remove(at: taken)
            return
        }
        let order = ended.indices.sorted { ended[$0].position.isEarlier(than: ended[$1].position) }
        guard let earliest = order.first, let latest = order.last else { return }
        // It stands for this one, too, so that nobody knows any more when all are back.
        ended[earliest].position = ended[earliest].position.forAnybody
        ended[earliest].isMany = true
        let refs = [earliest, latest].compactMap { ended[$0].goneAt }
        ended[earliest].goneAt = refs.count == 2 ? refs.min() : nil
        ended[earliest].standIn(for: ended[latest].stands)
        ended.remove(at: latest)
    }
}
