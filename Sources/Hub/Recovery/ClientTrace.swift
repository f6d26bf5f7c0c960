import Synchronization
import Wire

/// What one membership tells of its client, for finding out who of those that look alike comes back.
///
/// **Thread**: the unsafe properties are read and written under the lock of the registry that has the membership in a
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
    /// The number of the join's ref, where its refs count on.
    let ref: Int
    /// When it joined, in monotonic milliseconds.
    let began: Int64
    /// The same among all that sockets are asked, as `SessionRegistry.moment` counts.
    let moment: Int
    let acknowledged: AcknowledgementState
    private let isOver = Atomic(false)
    /// What it may have missed is decided, so that it can be missed itself.
    nonisolated(unsafe) var isSettled = false
    /// Joins that were sent what this one lacks, because they may be its client's.
    nonisolated(unsafe) var claims: [SessionClaim] = []
    /// Its place in the bucket's list.
    nonisolated(unsafe) var place = 0

    init(evidence: Evidence, ref: Int = 0, acknowledged: AcknowledgementState, at now: HubTime, moment: Int) {
        self.evidence = evidence
        self.ref = ref
        self.acknowledged = acknowledged
        began = now.monotonic
        self.moment = moment
    }

    /// The same client's from here on, where its token names somebody else.
    convenience init(renewing old: ClientTrace, at now: HubTime, moment: Int) {
        self.init(evidence: old.evidence, ref: old.ref, acknowledged: old.acknowledged, at: now, moment: moment)
    }

    var hasEnded: Bool { isOver.load(ordering: .acquiring) }
    func ends() { isOver.store(true, ordering: .releasing) }

    /// Whether its socket answered something that it was asked after a moment (`SessionRegistry.moment`).
    func wasAlive(after moment: Int) -> Bool { acknowledged.latest.moment > moment }

    /// A join came for it that certainly was its client, and it did not answer since.
    var isGone: Bool { claims.contains { $0.isCertain && !wasAlive(after: $0.trace.moment) } }

    /// Whether a joining client need not wait for it any longer: it lives, or it is known that it does not.
    func isDecided(for other: ClientTrace) -> Bool { wasAlive(after: other.moment) || hasEnded }
}

/// A join that was sent what a session lacks.
struct SessionClaim {
    let trace: ClientTrace
    /// Its client was certainly here before, so it came for one of the sessions that were there to come for.
    let isCertain: Bool
    /// How many of the bucket had been lost by then.
    let losses: Int
    /// There was no other session that it may have come for.
    let isAlone: Bool

    /// Whether nobody else can have come for the session.
    ///
    /// Where a sign-in names the device, its next join is most likely the same client; but as long as the one that came
    /// lives, the next one is another, and may be the owner.
    var counts: Bool { isCertain || trace.hasEnded }
}

/// What is seen of a client when it joins.
extension CatchUp {
    /// What a join tells of its client.
    func trace(
        of claims: Claims, joinRef: JSON, _ connection: Connection, _ progress: FeedProgress, _ hub: inout HubContext
    ) -> ClientTrace {
        ClientTrace(
            evidence: evidence(of: claims, joinRef: joinRef, connection, at: hub.now),
            ref: Int(joinRef.string ?? joinRef.description) ?? 0,
            acknowledged: acknowledged(of: connection, progress, &hub), at: hub.now, moment: sessions.moment())
    }

    /// Whether a client that joins was here before.
    ///
    /// Its refs tell it where they are further on than the messages that came by this socket, each of which takes one, and
    /// where it joins at once, as clients do who come back; others may be new to the channel. Clients in browsers count
    /// their refs on, so that one that begins anew there is a new page. Others may begin anew with each socket.
    private func evidence(
        of claims: Claims, joinRef: JSON, _ connection: Connection, at now: HubTime
    ) -> ClientTrace.Evidence {
        if let number = Int(joinRef.string ?? joinRef.description), number > connection.received,
            now.monotonic - connection.began < Self.promptReturn
        {
            return .refs
        }
        return claims.subject != nil && claims.session != nil && !connection.isPage ? .signIn : .none
    }

    /// Milliseconds in which clients that come back join their channels again.
    private static let promptReturn: Int64 = 5000
}
