import Signatures
import Synchronization
import Wire

/// A membership that hears row changes, as the registry knows it.
///
/// What arrived is not always taken. Clients give a join up that is not answered in time (10 s), and ignore what comes
/// for it until they join again; they answer pings meanwhile. So an acknowledgement is believed only of a member whose client
/// certainly knows that it joined, and until then it counts as being where it began.
package final class LiveSession: RecoverableSession, Sendable {
    typealias Position = RecoveryPosition

    private struct Start {
        /// Where to recover from while nothing was acknowledged since its changes came live.
        var position: RecoveryPosition
        /// The first ping whose answer counts; nil before its changes come live.
        var firstPing: Int?
        /// Where it began: when it joined, or when its client may have stopped to listen.
        var origin: RecoveryPosition
        /// It had missed something when it joined; so its leave is one of a client that has all of that only when it is
        /// acknowledged.
        var hadMissed = false
        /// Until when the client may be one that does not listen, by the hub's clock.
        var doubtedUntil = Int64.min
    }

    let key: RecoveryKey
    let trace: ClientTrace
    private let start: Mutex<Start>
    // These are only read and written under the registry's lock, which is what makes them safe.
    /// It missed nothing when that was decided, but may have missed what came then before its changes came live.
    nonisolated(unsafe) var mayMissMore = false
    /// How many sessions of the key have to be written down before this one's join is answered.
    nonisolated(unsafe) var needed = 0
    /// Its key was taken to be written while it was there, so that what is then found of other hubs is found for it, too.
    nonisolated(unsafe) var isLookedFor = false
    /// Where other hubs have clients that look like this one's; nil before it is known.
    nonisolated(unsafe) var elsewhere: [SessionRegistry.Elsewhere]?
    /// What stands in the database of that, while the hubs are asked.
    nonisolated(unsafe) var presumed: [SessionRegistry.Elsewhere]?
    /// Its client certainly was somewhere before, and not here.
    nonisolated(unsafe) var cameFromElsewhere = false
    /// It is not known yet where other hubs had its client, nor what stands in the database of that.
    var isSought: Bool { elsewhere == nil && presumed == nil }

    init(key: RecoveryKey, trace: ClientTrace, from point: RecoveryPoint) {
        self.key = key
        self.trace = trace
        start = Mutex(Start(position: RecoveryPosition(point: point), origin: RecoveryPosition(point: point)))
    }

    /// From where the member would have to recover if it were lost this moment.
    func position(at now: Int64) -> RecoveryPosition {
        let start = start.withLock { $0 }
        return now < start.doubtedUntil ? start.origin : acknowledged(start)
    }

    var origin: RecoveryPosition { start.withLock { $0.origin } }

    /// Whether a leave ends it for good.
    func isConfirmed(at now: Int64) -> Bool {
        let start = start.withLock { $0 }
        guard now >= start.doubtedUntil else { return false }
        return !start.hadMissed || isAcknowledged(start)
    }

    private func isAcknowledged(_ start: Start) -> Bool {
        start.firstPing.map { trace.acknowledged.latest.serial >= $0 } ?? false
    }

    private func acknowledged(_ start: Start) -> RecoveryPosition {
        isAcknowledged(start) ? RecoveryPosition(point: .mark(trace.acknowledged.latest.mark)) : start.position
    }

    /// Whether what its socket acknowledges is believed of it: its client certainly knows that it joined.
    func isBelieved(at now: Int64) -> Bool { start.withLock { now >= $0.doubtedUntil } }

    /// Where it begins is found.
    func settles(at position: RecoveryPosition, hadMissed: Bool) {
        start.withLock {
            $0.position = position
            $0.origin = position
            $0.hadMissed = hadMissed
        }
    }

    /// The member is sent what it missed from here on; until that is acknowledged, this is where it would start again.
    func begins(at position: RecoveryPosition) {
        start.withLock {
            $0.position = position
            $0.firstPing = nil
        }
    }

    /// Of what it is sent, all up to this cursor has arrived.
    func hasReached(_ cursor: String) { start.withLock { $0.position.partway = cursor } }

    func mayStandForAnother() { start.withLock { $0.position = $0.position.forAnybody } }

    /// The member's changes come live: from this ping on, answers are about them, too.
    func isLive(acknowledgedFrom serial: Int) { start.withLock { $0.firstPing = serial } }

    /// The join took so long that the client may have given it up.
    func isDoubted(until end: Int64) { start.withLock { $0.doubtedUntil = end } }

    /// From here on the client may ignore what it is sent.
    func mayBeIgnored(until end: Int64) {
        start.withLock {
            // Where it is doubted already, it stands further back.
            if $0.doubtedUntil == .min { $0.origin = acknowledged($0) }
            $0.doubtedUntil = end
        }
    }
}

/// How far a member is.
struct RecoveryPosition: SessionPosition, Sendable, Equatable {
    /// It has all up to here.
    var point: RecoveryPoint
    /// And of what came since, all up to this cursor: it was on its way to the present. Cursors that lie on the way from
    /// different points cannot be compared, so that it counts only for whom it is about.
    var partway: String?

    /// Where to go on who certainly stands here.
    var exact: RecoveryPoint { partway.map { .cursor($0) } ?? point }
    var forAnybody: RecoveryPosition { RecoveryPosition(point: point) }

    func isEarlier(than other: RecoveryPosition) -> Bool { point.isEarlier(than: other.point) }

    static func earliest(of positions: [RecoveryPosition]) -> RecoveryPosition? {
        guard positions.count > 1 else { return positions.first }
        return RecoveryPoint.earliest(of: positions.map(\.point)).map { RecoveryPosition(point: $0) }
    }
}

extension RecoveryPoint {
    /// Which of two lies further back. Marks are of this process, so they come after its start; a client's own cursor may
    /// be of any age.
    func isEarlier(than other: RecoveryPoint) -> Bool {
        switch (self, other) {
        case (.mark(let one), .mark(let two)): one < two
        case (.mark, _): false
        case (_, .mark), (.cursor, .restart), (.restart, .restored): true
        case (.restart, _), (.restored, _), (.cursor, _), (.snapshot, _), (.peer, _), (.earliest, _): false
        }
    }

    /// Whether another process said it, so that it cannot be compared with what this one knows.
    private var isForeign: Bool {
        switch self {
        case .restored, .snapshot, .peer, .earliest: true
        case .mark, .cursor, .restart: false
        }
    }

    private var isCursor: Bool { if case .cursor = self { true } else { false } }

    /// Of so many that cannot be compared each is kept.
    private static var mostApart: Int { 16 }

    /// The point that lies no later than any of several.
    ///
    /// Cursors are what clients said, who may say anything: they stand beside the others, so that one that is good for nothing takes
    /// nothing from anybody else. Of many some are left out: whoever had one brings it again.
    static func earliest(of points: [RecoveryPoint]) -> RecoveryPoint? {
        let parts = distinct(points)
        return parts.count > 1 ? .earliest(parts) : parts.first
    }

    /// The earliest of this process's own, and of the others so many as are kept apart: the time that it takes does not grow with the
    /// square of their number.
    static func distinct(_ points: [RecoveryPoint]) -> [RecoveryPoint] {
        var own: RecoveryPoint?
        var (cursors, foreign, isFolded): ([RecoveryPoint], [RecoveryPoint], Bool) = ([], [], false)
        func add(_ part: RecoveryPoint) {
            if part.isCursor {
                if cursors.count < mostApart, !cursors.contains(part) { cursors.append(part) }
            } else if part.isForeign {
                let part = isFolded ? part.folded : part
                guard !foreign.contains(part) else { return }
                foreign.append(part)
                guard foreign.count > mostApart, !isFolded else { return }
                // Where each hub left all of its clients lies no later, and is the same for many.
                isFolded = true
                foreign = foreign.reduce(into: []) { some, part in
                    if !some.contains(part.folded) { some.append(part.folded) }
                }
            } else if own.map({ part.isEarlier(than: $0) }) ?? true {
                own = part
            }
        }
        for point in points {
            if case .earliest(let some) = point { some.forEach(add) } else { add(point) }
        }
        return (own.map { [$0] } ?? []) + cursors + foreign
    }

    private var folded: RecoveryPoint {
        if case .peer(_, let stored) = self { .snapshot(stored) } else { self }
    }
}

/// What two joins have in common if one may take over from the other: the user and the sign-in, the role, the topic and
/// what was asked for.
///
/// Kept as 128 bits of a digest, because there is one for each membership. It is the same in every process, so that the
/// next one knows whom the last one served; and whoever can choose topics cannot make it somebody else's.
package struct RecoveryKey: Hashable, Sendable {
    package let high: UInt64
    package let low: UInt64
    /// Without a user, all who ask for the same look alike.
    let hasSubject: Bool
    /// As whose sessions its are counted; zero where that is not known.
    let user: UInt64

    init(claims: Claims, channel: ChannelKey, subscription: ChangeSubscription) {
        var text: [UInt8] = []
        text.reserveCapacity(512)
        // The length in front of each keeps ("ab", "c") and ("a", "bc") apart.
        func add(_ field: some Collection<UInt8>) {
            text += "\(field.count):".utf8
            text += field
        }
        func add(_ name: Name?) {
            text.append(name == nil ? 0 : 1)
            add((name ?? "").utf8)
        }
        add(claims.subject)
        add(claims.session)
        add(subscription.role.utf8)
        add(channel.topic.utf8)
        text.append(channel.isPrivate ? 1 : 0)
        text.append(subscription.isLegacy ? 1 : 0)
        for binding in subscription.bindings { add(binding.identity) }
        let digest = HashFunction.sha256.hash(text)
        func word(at start: Int) -> UInt64 { digest[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) } }
        high = word(at: 0)
        low = word(at: 8)
        hasSubject = claims.subject != nil
        let name = claims.subject.map { "user:\($0)" } ?? "role:\(claims.role)"
        user = HashFunction.sha256.hash(Array(name.utf8)).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Under which places are kept of sessions that gave way to others of the same user. No client can ask for it.
    var ofUser: RecoveryKey { RecoveryKey(high: user, low: .max) }
    var isOfUser: Bool { low == .max }

    /// As it was written down.
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
