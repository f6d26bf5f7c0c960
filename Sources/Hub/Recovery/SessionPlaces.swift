/// The stored positions of clients that may come back: with them, the next process sends no client more than it may
/// lack, and nothing from before it first came.
///
/// Clients' proofs advance every few seconds, for all of them, so they are not written for each: a client that keeps up
/// is stored as following, with its start, and one mark for all followers says how far the last of them is
/// (`surveyProgress`). Only clients that were lost or lag behind are stored with a position of their own, so that no
/// client delays another.
///
/// The stored mark must never exceed what any stored follower has. The order of steps ensures that: clients that no
/// longer follow are found, that is written, and then what all others have proven.
extension SessionRegistry {
    package enum Place: Sendable, Equatable {
        /// The clients have everything up to this point.
        case at(RecoveryPoint)
        /// The clients have everything up to this mark, and up to the mark stored as proven.
        case following(since: Int)

        /// Whether a client at the point would not be sent too little by this place.
        ///
        /// - Parameter proven: the mark that may be stored as proven.
        func covers(_ point: RecoveryPoint, proven: Int) -> Bool {
            switch (self, point) {
            // A client that came with a cursor brings it again.
            case (_, .cursor): true
            case (_, .earliest(let points)): points.allSatisfy { covers($0, proven: proven) }
            case (.following(let since), .mark(let mark)): max(since, proven) <= mark
            case (.following, _): false
            case (.at(.earliest(let stored)), _): stored.contains { Place.at($0).covers(point, proven: proven) }
            case (.at(.mark(let stored)), .mark(let mark)): stored <= mark
            // Marks belong to this process, except for 0, which is where it began.
            case (.at(.restored), .mark(let mark)): mark > 0
            case (.at(.snapshot(let stored)), .peer(_, let otherwise)): stored == otherwise
            case (.at(let stored), _): stored == .restart || stored == point
            }
        }
    }

    /// Surveys the progress of all clients, about once a second; called by the writer of changes.
    ///
    /// - Returns: the mark up to which all followers have everything. It may be stored once everything changed by this
    ///   survey (`takeChanged`) is. Nil if there are no followers.
    package func surveyProgress(at now: HubTime) -> Int? {
        state.withLock { state in
            state.now = max(state.now, now.monotonic)
            let slow = state.recording.pace.mark(at: now.monotonic - longestProof)
            state.recording.slow = slow
            var (latest, proven): (Int, Int?) = (0, nil)
            var moved: [(key: RecoveryKey, mark: Int?)] = []
            var crowds: [(key: RecoveryKey, lowest: RecoveryPoint?)] = []
            for (key, bucket) in state.buckets {
                guard bucket.place != nil || bucket.sessions.isCrowd,
                    let stand = bucket.sessions.stand(at: now.monotonic)
                else { continue }
                if bucket.sessions.isCrowd { crowds.append((key, .earliest(of: stand.points))) }
                guard let place = bucket.place else { continue }
                if let mark = stand.mark { latest = max(latest, mark) }
                let follows = stand.mark.map { $0 >= slow } ?? false && !Self.isAwaited(key, state)
                switch (place, stand.mark) {
                case (.following, let mark?) where follows: proven = min(proven ?? mark, mark)
                case (.following, _): moved.append((key, nil))
                case (.at(let point), let mark?)
                where follows || state.recording.pace.isWorthWriting(mark, after: point):
                    moved.append((key, mark))
                case (.at, _): break
                }
            }
            for (key, lowest) in crowds { state.buckets[key]?.lowest = lowest }
            state.recording.pace.recordMark(latest, at: now.monotonic)
            if let proven { state.recording.proven = max(state.recording.proven, proven) }
            for (key, mark) in moved {
                // A client that follows again and is slightly behind the others will catch up within seconds.
                if let mark, mark >= slow, mark < state.recording.proven { continue }
                state.buckets[key]?.place = nil
                state.recording.changed.insert(key)
            }
            return proven
        }
    }

    // MARK: Under the lock

    /// Returns the position of the slowest session in a crowd, as of the last survey, or as of now if there was none;
    /// nil if there is no crowd.
    static func lowest(ofCrowd key: RecoveryKey, _ state: inout State, at now: Int64) -> RecoveryPoint? {
        guard let bucket = state.buckets[key], bucket.sessions.isCrowd else { return nil }
        if let lowest = bucket.lowest { return lowest }
        let lowest = RecoveryPoint.earliest(of: bucket.sessions.stand(at: now)?.points ?? [])
        state.buckets[key]?.lowest = lowest
        return lowest
    }

    /// Lowers the crowd's position for a new session, which may begin further back. After that it can only advance.
    static func noteLowest(_ session: LiveSession, _ state: inout State) {
        guard let lowest = state.buckets[session.key]?.lowest else { return }
        state.buckets[session.key]?.lowest = .earliest(of: [lowest, session.origin.point])
    }

    /// Whether a client may come back.
    private static func isAwaited(_ key: RecoveryKey, _ state: State) -> Bool {
        state.restored?[key] != nil || state.buckets[key]?.sessions.ended.contains(where: \.isAwaited) ?? false
    }

    /// Returns the place to store.
    static func place(of key: RecoveryKey, _ state: State) -> Place {
        let sessions = state.buckets[key]?.sessions
        let stand = sessions?.stand(at: state.now)
        if let mark = stand?.mark, mark >= max(state.recording.slow, state.recording.proven), !isAwaited(key, state) {
            return .following(since: mark)
        }
        var points = stand?.points ?? []
        if let left = state.restored?[key] { points.append(left.point) }
        for ended in sessions?.ended ?? [] where ended.isAwaited { points.append(ended.position.point) }
        return .at(RecoveryPoint.earliest(of: points) ?? .restart)
    }

    /// Whether the stored place neither causes any of the key's clients to be sent too little nor delays others.
    static func isPlaced(_ key: RecoveryKey, _ session: LiveSession?, _ state: State) -> Bool {
        guard let bucket = state.buckets[key], let place = bucket.place else { return count(of: key, state) == 0 }
        let proven = state.recording.proven
        if let session, !place.covers(session.origin.point, proven: proven) { return false }
        if case .following = place, isAwaited(key, state) { return false }
        guard bucket.isWrittenAsLost == (writtenLoss(of: key, state) != nil) else { return false }
        return bucket.sessions.ended.allSatisfy { !$0.isAwaited || place.covers($0.position.point, proven: proven) }
    }
}

extension SessionBucket<LiveSession> {
    /// The combined position of the live sessions.
    struct Stand {
        var mark: Int?
        /// More than one if they cannot be compared.
        var points: [RecoveryPoint]
    }

    /// Nil if there are no live sessions.
    func stand(at now: Int64) -> Stand? {
        var lowest: Int?
        var others: [RecoveryPoint] = []
        for session in live where session.trace.isSettled && !session.trace.isGone {
            switch session.position(at: now).point {
            case .mark(let mark): lowest = min(lowest ?? mark, mark)
            case let point: others.append(point)
            }
        }
        others = RecoveryPoint.distinct(others)
        guard lowest != nil || !others.isEmpty else { return nil }
        return Stand(mark: others.isEmpty ? lowest : nil, points: others + (lowest.map { [.mark($0)] } ?? []))
    }
}

/// Marks that were proven, with their times, by which lagging sessions are recognized.
struct ProofPace {
    private var seconds: [(mark: Int, at: Int64)] = []
    private static let most = 128
    /// Milliseconds by which a position must have advanced to be worth writing again.
    private static let step: Int64 = 10_000

    mutating func recordMark(_ mark: Int, at now: Int64) {
        guard mark > seconds.last?.mark ?? 0 else { return }
        seconds.append((mark, now))
        if seconds.count > Self.most { seconds.removeFirst() }
    }

    /// Returns the highest mark that was proven by then.
    func mark(at time: Int64) -> Int { seconds.last { $0.at <= time }?.mark ?? 0 }

    /// Whether a lagging session that is now at a mark is stored too far back.
    func isWorthWriting(_ mark: Int, after point: RecoveryPoint) -> Bool {
        guard case .mark(let written) = point else { return true }
        guard let then = time(of: written), let now = time(of: mark) else { return false }
        return now - then >= Self.step
    }

    private func time(of mark: Int) -> Int64? { seconds.first { $0.mark >= mark }?.at ?? seconds.last?.at }
}
