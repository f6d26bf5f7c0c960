import Synchronization
import Wire

/// Evidence that one membership gives about its client, used to decide which of several lookalikes is coming back.
///
/// **Thread**: the unsafe properties are accessed under the lock of the registry that has the membership in a
/// `SessionBucket`, which makes them safe. The rest may be read on any thread.
package final class ClientTrace: Sendable {
    /// Evidence that the client was here before, and so came for one of the waiting sessions.
    enum Evidence {
        /// None.
        case none
        /// The sign-in belongs to a device that is not a browser, which rarely has more than one client.
        case signIn
        /// The client's refs continue from those on an earlier socket.
        case refs
    }

    let evidence: Evidence
    /// The number of the join's ref, if its refs continue.
    let ref: Int
    /// When it joined, in monotonic milliseconds.
    let began: Int64
    /// The same moment, ordered among all pings and joins, as counted by `SessionRegistry.moment`.
    let moment: Int
    let acknowledged: AcknowledgementState
    private let isOver = Atomic(false)
    /// True once the messages it may have missed are determined, so that it can leave a session behind itself.
    nonisolated(unsafe) var isSettled = false
    /// Joins that were sent what this one lacks, because they may come from its client.
    nonisolated(unsafe) var claims: [SessionClaim] = []
    /// Its index in the bucket's list.
    nonisolated(unsafe) var place = 0

    init(evidence: Evidence, ref: Int = 0, acknowledged: AcknowledgementState, at now: HubTime, moment: Int) {
        self.evidence = evidence
        self.ref = ref
        self.acknowledged = acknowledged
        began = now.monotonic
        self.moment = moment
    }

    /// The trace of the same client under a token that names another user.
    convenience init(renewing old: ClientTrace, at now: HubTime, moment: Int) {
        self.init(evidence: old.evidence, ref: old.ref, acknowledged: old.acknowledged, at: now, moment: moment)
    }

    var hasEnded: Bool { isOver.load(ordering: .acquiring) }
    func markEnded() { isOver.store(true, ordering: .releasing) }

    /// Whether its socket answered a ping sent after a moment (`SessionRegistry.moment`).
    func wasAlive(after moment: Int) -> Bool { acknowledged.latest.moment > moment }

    /// Whether its client has certainly rejoined on another socket, and its own has been silent since.
    var isGone: Bool { claims.contains { $0.isCertain && !wasAlive(after: $0.trace.moment) } }

    /// Whether a joining client need not wait for it any longer: it has shown a sign of life, or has ended.
    func isDecided(for other: ClientTrace) -> Bool { wasAlive(after: other.moment) || hasEnded }
}

/// A join that was sent what a session lacks.
struct SessionClaim {
    let trace: ClientTrace
    /// The client was certainly here before, so it came for one of the sessions available then.
    let isCertain: Bool
    /// The number of sessions in the bucket that had been lost by then.
    let losses: Int
    /// The join cannot have come for any other session.
    let isAlone: Bool

    /// Whether no other client can have come for the session.
    ///
    /// If a sign-in names the device, its next join is most likely the same client; but while the one that came is
    /// alive, the next one is another, and may be the owner.
    var counts: Bool { isCertain || trace.hasEnded }
}

/// Evidence from a client's join.
extension CatchUp {
    /// Returns the evidence in a join about its client.
    func trace(
        of claims: Claims, joinRef: JSON, _ connection: Connection, _ progress: FeedProgress, _ hub: inout HubContext
    ) -> ClientTrace {
        ClientTrace(
            evidence: evidence(of: claims, joinRef: joinRef, connection, at: hub.now),
            ref: Int(joinRef.string ?? joinRef.description) ?? 0,
            acknowledged: acknowledgementState(of: connection, progress, &hub), at: hub.now, moment: sessions.moment())
    }

    /// Returns the evidence that a joining client was here before.
    ///
    /// Refs are evidence if they are ahead of the number of messages on this socket, each of which takes one, and if
    /// the client joins at once, as returning clients do; others may be new to the channel. Clients in browsers
    /// continue their refs, so that one that starts over there is a new page. Others may start over with each socket.
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

    /// Milliseconds within which returning clients rejoin their channels.
    private static let promptReturn: Int64 = 5000
}
