/// Where clients of this hub are, as another hub asks that somebody joined who looks like them.
///
/// The answer is the earliest position that is proven of any session of the key, whether it has ended or not: nobody knows whether a
/// socket that is open here is a dead one of the client that joined there, and what a live one lacks is little.
extension SessionRegistry {
    package enum Whereabouts: Sendable, Equatable {
        /// Nobody who looks like that was here, or nobody who could come back.
        case nobody
        /// Whoever was here has all up to this point, of this process.
        case from(RecoveryPoint)
        /// It is not known, or would take too long to find out.
        case unknown
    }

    /// Sessions of one key that are looked at. Of more it is not known.
    private static var mostAsked: Int { 1_000 }

    package func whereabouts(of keys: [RecoveryKey], at now: HubTime) -> [Whereabouts] {
        state.withLock { state in keys.map { whereabouts(of: $0, state, at: now.monotonic) } }
    }

    private func whereabouts(of key: RecoveryKey, _ state: State, at now: Int64) -> Whereabouts {
        guard window > 0 else { return .nobody }
        var positions: [RecoveryPosition] = []
        // As in `settle` and `beginRestart`: whom this hub's last process served, and whose window is not over.
        let mayBeFromBefore = state.restartUntil.map { state.clock.time(at: now) < $0 } ?? true
        if mayBeFromBefore, let left = state.restored.map({ $0[key]?.point }) ?? .restart {
            positions.append(RecoveryPosition(point: left))
        }
        if let sessions = state.buckets[key]?.sessions {
            guard sessions.live.count <= Self.mostAsked else { return .unknown }
            positions += sessions.ended.lazy.filter(\.isAwaited).map(\.position)
            for session in sessions.live where !session.trace.isGone {
                // It may have come from a third hub, of which nothing is known here yet.
                if state.recording.looksElsewhere, session.elsewhere == nil { return .unknown }
                positions.append(session.position(at: now))
            }
        }
        return RecoveryPosition.earliest(of: positions).map { .from($0.forAnybody.point) } ?? .nobody
    }
}
