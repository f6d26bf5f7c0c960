import Synchronization

/// A membership that hears row changes, as the recovery book knows it.
///
/// What arrived is not always taken. Clients give a join up that is not answered in time (10 s), and ignore what comes
/// for it until they join again; they answer pings meanwhile. So a proof is believed only of a member whose client
/// certainly knows that it joined, and until then it counts as standing where it began.
package final class LiveSession: Sendable {
    private struct Start {
        /// Where to recover from while nothing was proven since the member took its seat.
        var point: RecoveryPoint
        /// The first proof that counts; nil before there is a seat.
        var proof: Int?
        /// Where it began: when it joined, or when its client may have stopped to listen.
        var origin: RecoveryPoint
        /// Until when the client may be one that does not listen, by the hub's clock.
        var doubtedUntil = Int64.min
    }

    let key: RecoveryKey
    /// The number of the join's ref. Clients count their refs on over reconnects, so one that comes back has a higher one.
    let joinNumber: Int
    /// When it joined, in monotonic milliseconds.
    let began: Int64
    /// It had missed something when it joined; so its leave is one of a client that has all of that only when it is proven.
    let hadMissed: Bool
    private let lifeline: Lifeline
    private let start: Mutex<Start>
    /// Its place in the key's list; the book's lock guards it.
    nonisolated(unsafe) var place = 0
    /// Guarded by the book's lock, too.
    nonisolated(unsafe) var hasEnded = false

    init(
        key: RecoveryKey, joinNumber: Int, lifeline: Lifeline, point: RecoveryPoint, hadMissed: Bool, at now: HubTime
    ) {
        self.key = key
        self.joinNumber = joinNumber
        self.lifeline = lifeline
        self.hadMissed = hadMissed
        began = now.monotonic
        start = Mutex(Start(point: point, origin: point))
    }

    /// From where the member would have to recover if it were lost this moment.
    func point(at now: Int64) -> RecoveryPoint {
        let start = start.withLock { $0 }
        return now < start.doubtedUntil ? start.origin : proven(start)
    }

    var origin: RecoveryPoint { start.withLock { $0.origin } }

    /// Whether a leave ends it for good.
    func isConfirmed(at now: Int64) -> Bool {
        let start = start.withLock { $0 }
        guard now >= start.doubtedUntil else { return false }
        return !hadMissed || isProven(start)
    }

    /// Whether its socket answered something that was asked after a moment of the hub's clock.
    func wasAlive(after moment: Int64) -> Bool { lifeline.proof.at > moment }

    private func isProven(_ start: Start) -> Bool { start.proof.map { lifeline.proof.serial >= $0 } ?? false }

    private func proven(_ start: Start) -> RecoveryPoint { isProven(start) ? .mark(lifeline.proof.mark) : start.point }

    /// The member is brought what it missed from here on; until that is proven, this is where it would start again.
    func begins(at point: RecoveryPoint) {
        start.withLock {
            $0.point = point
            $0.proof = nil
        }
    }

    /// The member has its seat: proofs from the next one on are about its changes, too.
    func isSeated(provenFrom serial: Int) { start.withLock { $0.proof = serial } }

    /// The join took so long that the client may have given it up.
    func isDoubted(until end: Int64) { start.withLock { $0.doubtedUntil = end } }

    /// From here on the client may ignore what it is sent.
    func mayBeIgnored(until end: Int64) {
        start.withLock {
            // Where it is doubted already, it stands further back.
            if $0.doubtedUntil == .min { $0.origin = proven($0) }
            $0.doubtedUntil = end
        }
    }
}

extension RecoveryPoint {
    /// Which of two lies further back. Marks are of this process, so they come after its start; a client's own cursor may
    /// be of any age.
    func isEarlier(than other: RecoveryPoint) -> Bool {
        switch (self, other) {
        case (.mark(let one), .mark(let two)): one < two
        case (.mark, _): false
        case (.restart, .mark), (.cursor, .mark), (.cursor, .restart): true
        case (.restart, _), (.cursor, .cursor): false
        }
    }
}
