/// The positions of this hub's clients, for another hub that a lookalike has joined.
///
/// The answer is the earliest proven position of any session of the key, ended or not: it is unknown whether an open
/// socket here is a dead one of the client that joined there, and a live one lacks little.
extension SessionRegistry {
    package enum Whereabouts: Sendable, Equatable {
        /// No lookalike was here, or none that could come back.
        case nobody
        /// All lookalikes have everything up to this point, which belongs to this process.
        case from(RecoveryPoint)
        /// The position is unknown, or would take too long to determine.
        case unknown
    }

    /// The maximum number of sessions of one key that are examined; with more, the answer is `unknown`.
    private static var mostAsked: Int { 1_000 }

    package func whereabouts(of keys: [RecoveryKey], at now: HubTime) -> [Whereabouts] {
        state.withLock { state in keys.map { whereabouts(of: $0, state, at: now.monotonic) } }
    }

    private func whereabouts(of key: RecoveryKey, _ state: State, at now: Int64) -> Whereabouts {
        guard window > 0 else { return .nobody }
        var positions: [RecoveryPosition] = []
        // As in `settleSession` and `beginRestart`: this hub's last process may have had such clients, whose window is
        // not over.
        let mayBeFromBefore = state.restartUntil.map { state.clock.time(at: now) < $0 } ?? true
        if mayBeFromBefore, let left = state.restored.map({ $0[key]?.point }) ?? .restart {
            positions.append(RecoveryPosition(point: left))
        }
        if let sessions = state.buckets[key]?.sessions {
            guard sessions.live.count <= Self.mostAsked else { return .unknown }
            positions += sessions.ended.lazy.filter(\.isAwaited).map(\.position)
            for session in sessions.live where !session.trace.isGone {
                // It may have come from a third hub, about which nothing is known here yet.
                if state.recording.looksElsewhere, session.elsewhere == nil { return .unknown }
                positions.append(session.position(at: now))
            }
        }
        return RecoveryPosition.earliest(of: positions).map { .from($0.forAnybody.point) } ?? .nobody
    }
}
