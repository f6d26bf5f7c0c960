import Synchronization

/// What one membership tells of its client, for finding out who of those that look alike comes back.
///
/// **Thread**: the unsafe properties are read and written under the lock of the book that has the membership in a
/// `SessionBucket`, which is what makes them safe. The rest may be read on any thread.
package final class ClientTrace: Sendable {
    /// Whether its client was here before, and so came for one of the sessions that wait.
    enum Evidence {
        /// Nothing tells.
        case none
        /// Its sign-in is one of a device that is no browser, where there is rarely more than one client.
        case signIn
        /// Its refs count on from those of a socket before this one.
        case refs
    }

    let evidence: Evidence
    /// When it joined, in monotonic milliseconds.
    let began: Int64
    /// The same among all that sockets are asked, as `RecoveryBook.moment` counts.
    let moment: Int
    let lifeline: Lifeline
    private let isOver = Atomic(false)
    /// What it may have missed is decided, so that it can be missed itself.
    nonisolated(unsafe) var isSettled = false
    /// Joins that were brought what this one lacks, because they may be its client's.
    nonisolated(unsafe) var claims: [SessionClaim] = []
    /// Its place in the bucket's list.
    nonisolated(unsafe) var place = 0

    init(evidence: Evidence, lifeline: Lifeline, at now: HubTime, moment: Int) {
        self.evidence = evidence
        self.lifeline = lifeline
        began = now.monotonic
        self.moment = moment
    }

    /// The same client's from here on, where its token names somebody else.
    convenience init(renewing old: ClientTrace, at now: HubTime, moment: Int) {
        self.init(evidence: old.evidence, lifeline: old.lifeline, at: now, moment: moment)
    }

    var hasEnded: Bool { isOver.load(ordering: .acquiring) }
    func ends() { isOver.store(true, ordering: .releasing) }

    /// Whether its socket answered something that it was asked after a moment (`RecoveryBook.moment`).
    func wasAlive(after moment: Int) -> Bool { lifeline.proof.moment > moment }

    /// A join came for it that certainly was its client, and it did not answer since.
    var isGone: Bool { claims.contains { $0.isCertain && !wasAlive(after: $0.trace.moment) } }

    /// Whether a joining client need not wait for it any longer: it lives, or it is known that it does not.
    func isDecided(for other: ClientTrace) -> Bool { wasAlive(after: other.moment) || hasEnded }
}

/// A join that was brought what a session lacks.
struct SessionClaim {
    let trace: ClientTrace
    /// Its client was certainly here before, so it came for one of the sessions that were there to come for.
    let isCertain: Bool

    /// Whether nobody else can have come for the session.
    ///
    /// Where a sign-in names the device, its next join is most likely the same client; but as long as the one that came
    /// lives, the next one is another, and may be the owner.
    var counts: Bool { isCertain || trace.hasEnded }
}
