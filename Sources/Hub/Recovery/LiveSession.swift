import Signatures
import Synchronization
import Wire

/// The registry's view of a membership that hears row changes.
///
/// Arrival does not mean acceptance. Clients give up a join that is not answered in time (10 s), and ignore what it
/// brings until they rejoin, while still answering pings. So an acknowledgement is believed only if the client
/// certainly knows that it joined; until then the member counts as standing where it began.
package final class LiveSession: RecoverableSession, Sendable {
    typealias Position = RecoveryPosition

    private struct Start {
        /// The position to recover from while nothing was acknowledged since live changes began.
        var position: RecoveryPosition
        /// The first ping whose answer counts; nil before live changes begin.
        var firstPing: Int?
        /// The position at which it joined, or at which its client may have stopped listening.
        var origin: RecoveryPosition
        /// It had missed something when it joined, so a leave ends the session only after the missed changes are
        /// acknowledged.
        var hadMissed = false
        /// Until this time on the hub's clock, the client may not be listening.
        var doubtedUntil = Int64.min
    }

    let key: RecoveryKey
    let trace: ClientTrace
    private let start: Mutex<Start>
    // These are accessed only under the registry's lock, which makes them safe.
    /// It had missed nothing at the time of that decision, but may have missed changes between then and its live
    /// changes.
    nonisolated(unsafe) var mayMissMore = false
    /// The number of the key's sessions that must be written down before this one's join is answered.
    nonisolated(unsafe) var needed = 0
    /// Its key was taken for writing while it was there, so that other hubs found by that write are found for it, too.
    nonisolated(unsafe) var isLookedFor = false
    /// The positions at which other hubs had clients that look like this one; nil before that is known.
    nonisolated(unsafe) var elsewhere: [SessionRegistry.Elsewhere]?
    /// The stored ones of these, while the hubs are asked.
    nonisolated(unsafe) var presumed: [SessionRegistry.Elsewhere]?
    /// Its client was certainly somewhere before, and not here.
    nonisolated(unsafe) var cameFromElsewhere = false
    /// Neither other hubs' clients that look like this one are known, nor the stored ones.
    var isSought: Bool { elsewhere == nil && presumed == nil }

    init(key: RecoveryKey, trace: ClientTrace, from point: RecoveryPoint) {
        self.key = key
        self.trace = trace
        start = Mutex(Start(position: RecoveryPosition(point: point), origin: RecoveryPosition(point: point)))
    }

    /// Returns the position from which the member would have to recover if it were lost now.
    func position(at now: Int64) -> RecoveryPosition {
        let start = start.withLock { $0 }
        return now < start.doubtedUntil ? start.origin : acknowledgedPosition(start)
    }

    var origin: RecoveryPosition { start.withLock { $0.origin } }

    /// Whether a leave ends the session for good.
    func isConfirmed(at now: Int64) -> Bool {
        let start = start.withLock { $0 }
        guard now >= start.doubtedUntil else { return false }
        return !start.hadMissed || isAcknowledged(start)
    }

    private func isAcknowledged(_ start: Start) -> Bool {
        start.firstPing.map { trace.acknowledged.latest.serial >= $0 } ?? false
    }

    private func acknowledgedPosition(_ start: Start) -> RecoveryPosition {
        isAcknowledged(start) ? RecoveryPosition(point: .mark(trace.acknowledged.latest.mark)) : start.position
    }

    /// Whether its socket's acknowledgements count: its client certainly knows that it joined.
    func isBelieved(at now: Int64) -> Bool { start.withLock { now >= $0.doubtedUntil } }

    /// Sets the position at which the session starts.
    func settleStart(at position: RecoveryPosition, hadMissed: Bool) {
        start.withLock {
            $0.position = position
            $0.origin = position
            $0.hadMissed = hadMissed
        }
    }

    /// Restarts at a position from which missed changes are sent; until they are acknowledged, it would start there
    /// again.
    func resetStart(at position: RecoveryPosition) {
        start.withLock {
            $0.position = position
            $0.firstPing = nil
        }
    }

    /// Records that the recovered changes up to this cursor have arrived.
    func recordReached(_ cursor: String) { start.withLock { $0.position.partway = cursor } }

    func mayStandForAnother() { start.withLock { $0.position = $0.position.forAnybody } }

    /// Records that live changes begin: answers from this ping on cover them.
    func startLive(acknowledgedFrom serial: Int) { start.withLock { $0.firstPing = serial } }

    /// Doubts the client because its join took so long that it may have given up.
    func startDoubt(until end: Int64) { start.withLock { $0.doubtedUntil = end } }

    /// Doubts the client because it may ignore what it is sent from now on.
    func startIgnoring(until end: Int64) {
        start.withLock {
            // If it is doubted already, its origin is further back.
            if $0.doubtedUntil == .min { $0.origin = acknowledgedPosition($0) }
            $0.doubtedUntil = end
        }
    }
}

/// The position that a member has reached.
struct RecoveryPosition: SessionPosition, Sendable, Equatable {
    /// It has everything up to this point.
    var point: RecoveryPoint
    /// It also has everything after the point up to this cursor, as it was catching up. Cursors on the way from
    /// different points cannot be compared, so this counts only for the member itself.
    var partway: String?

    /// The point to resume from for a client that is certainly at this position.
    var exact: RecoveryPoint { partway.map { .cursor($0) } ?? point }
    var forAnybody: RecoveryPosition { RecoveryPosition(point: point) }

    func isEarlier(than other: RecoveryPosition) -> Bool { point.isEarlier(than: other.point) }

    static func earliest(of positions: [RecoveryPosition]) -> RecoveryPosition? {
        guard positions.count > 1 else { return positions.first }
        return RecoveryPoint.earliest(of: positions.map(\.point)).map { RecoveryPosition(point: $0) }
    }
}

extension RecoveryPoint {
    /// Whether this point is before another. Marks belong to this process, so they follow its start; a client's own
    /// cursor may be of any age.
    func isEarlier(than other: RecoveryPoint) -> Bool {
        switch (self, other) {
        case (.mark(let one), .mark(let two)): one < two
        case (.mark, _): false
        case (_, .mark), (.cursor, .restart), (.restart, .restored): true
        case (.restart, _), (.restored, _), (.cursor, _), (.snapshot, _), (.peer, _), (.earliest, _): false
        }
    }

    /// Whether another process supplied it, so that it cannot be compared with what this one knows.
    private var isForeign: Bool {
        switch self {
        case .restored, .snapshot, .peer, .earliest: true
        case .mark, .cursor, .restart: false
        }
    }

    private var isCursor: Bool { if case .cursor = self { true } else { false } }

    /// The maximum number of incomparable points that are kept separately.
    private static var mostApart: Int { 16 }

    /// Returns a point no later than any of the given ones.
    ///
    /// Cursors come from clients, which may send anything: they are kept beside the others, so that a worthless one
    /// costs other clients nothing. If there are many, some are dropped: their clients bring them again.
    static func earliest(of points: [RecoveryPoint]) -> RecoveryPoint? {
        let parts = distinct(points)
        return parts.count > 1 ? .earliest(parts) : parts.first
    }

    /// Returns the earliest of this process's own points, and of the others as many as are kept separately: the time it
    /// takes does not grow with the square of their number.
    static func distinct(_ points: [RecoveryPoint]) -> [RecoveryPoint] {
        var own: RecoveryPoint?
        var (cursors, foreign, isFolded): ([RecoveryPoint], [RecoveryPoint], Bool) = ([], [], false)
        func addPart(_ part: RecoveryPoint) {
            if part.isCursor {
                if cursors.count < mostApart, !cursors.contains(part) { cursors.append(part) }
            } else if part.isForeign {
                let part = isFolded ? part.folded : part
                guard !foreign.contains(part) else { return }
                foreign.append(part)
                guard foreign.count > mostApart, !isFolded else { return }
                // The point at which each hub left all of its clients is no later, and is the same for many.
                isFolded = true
                foreign = foreign.reduce(into: []) { some, part in
                    if !some.contains(part.folded) { some.append(part.folded) }
                }
            } else if own.map({ part.isEarlier(than: $0) }) ?? true {
                own = part
            }
        }
        for point in points {
            if case .earliest(let some) = point { some.forEach(addPart) } else { addPart(point) }
        }
        return (own.map { [$0] } ?? []) + cursors + foreign
    }

    private var folded: RecoveryPoint {
        if case .peer(_, let stored) = self { .snapshot(stored) } else { self }
    }
}

/// The properties shared by two joins if one may take over from the other: the user and the sign-in, the role, the
/// topic and the requested changes.
///
/// Kept as 128 bits of a digest, because there is one for each membership. It is the same in every process, so that the
/// next one knows this one's clients; and choosing topics does not allow forging another client's key.
package struct RecoveryKey: Hashable, Sendable {
    package let high: UInt64
    package let low: UInt64
    /// Without a user, all clients with the same request look alike.
    let hasSubject: Bool
    /// The user whose share the key's sessions count towards; zero if unknown.
    let user: UInt64

    init(claims: Claims, channel: ChannelKey, subscription: ChangeSubscription) {
        var text: [UInt8] = []
        text.reserveCapacity(512)
        // The length before each field keeps ("ab", "c") and ("a", "bc") apart.
        func addField(_ field: some Collection<UInt8>) {
            text += "\(field.count):".utf8
            text += field
        }
        func addField(_ name: Name?) {
            text.append(name == nil ? 0 : 1)
            addField((name ?? "").utf8)
        }
        addField(claims.subject)
        addField(claims.session)
        addField(subscription.role.utf8)
        addField(channel.topic.utf8)
        text.append(channel.isPrivate ? 1 : 0)
        text.append(subscription.isLegacy ? 1 : 0)
        for binding in subscription.bindings { addField(binding.identity) }
        let digest = HashFunction.sha256.hash(text)
        func word(at start: Int) -> UInt64 { digest[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) } }
        high = word(at: 0)
        low = word(at: 8)
        hasSubject = claims.subject != nil
        let name = claims.subject.map { "user:\($0)" } ?? "role:\(claims.role)"
        user = HashFunction.sha256.hash(Array(name.utf8)).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The key for positions of sessions that gave way to others of the same user. No client can ask for it.
    var ofUser: RecoveryKey { RecoveryKey(high: user, low: .max) }
    var isOfUser: Bool { low == .max }

    /// Creates a key from its stored form.
    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
        hasSubject = false
        user = 0
    }

    package static func == (one: RecoveryKey, other: RecoveryKey) -> Bool {
        one.high == other.high && one.low == other.low
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(high) }
}
