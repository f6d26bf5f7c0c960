/// Where those stand who may come back, as it is written down: the next process sends nobody more than it may lack, and nothing
/// from before it first came.
///
/// What clients prove moves on every few seconds, of all of them, so that it is not written for each: who follows is written down
/// as following, with where it began, and for all of them together how far the last of them is (`survey`). Only who was lost, or
/// lags behind the others, is written down with a place of its own; so nobody holds back anybody else.
///
/// That what is proven is never more than somebody has who is written down as following is seen to in this order: whoever does not
/// follow any more is found, that is written, and then what is proven by all others.
extension SessionRegistry {
    package enum Place: Sendable, Equatable {
        /// They have everything up to here.
        case at(RecoveryPoint)
        /// They have everything up to this mark, and up to what is written down as proven.
        case following(since: Int)

        /// Whether who stands there would not be sent too little by it.
        ///
        /// - Parameter proven: what may be written down as proven.
        func covers(_ point: RecoveryPoint, proven: Int) -> Bool {
            switch (self, point) {
            // Whoever came with a cursor brings it again.
            case (_, .cursor): true
            case (_, .earliest(let points)): points.allSatisfy { covers($0, proven: proven) }
            case (.following(let since), .mark(let mark)): max(since, proven) <= mark
            case (.following, _): false
            case (.at(.earliest(let stored)), _): stored.contains { Place.at($0).covers(point, proven: proven) }
            case (.at(.mark(let stored)), .mark(let mark)): stored <= mark
            // Marks are of this process, but for 0, which is where it began.
            case (.at(.restored), .mark(let mark)): mark > 0
            case (.at(.snapshot(let stored)), .peer(_, let otherwise)): stored == otherwise
            case (.at(let stored), _): stored == .restart || stored == point
            }
        }
    }

    /// Looks at how far everybody is, about once a second: by whoever writes down what changes.
    ///
    /// - Returns: the mark up to which all have everything who follow. It may be written down when all is that changed (`takeChanged`)
    ///   by this. Nil where nobody follows.
    package func survey(at now: HubTime) -> Int? {
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
            state.recording.pace.note(latest, at: now.monotonic)
            if let proven { state.recording.proven = max(state.recording.proven, proven) }
            for (key, mark) in moved {
                // One that follows again, and is not quite as far as the others, will be in seconds.
                if let mark, mark >= slow, mark < state.recording.proven { continue }
                state.buckets[key]?.place = nil
                state.recording.changed.insert(key)
            }
            return proven
        }
    }

    // MARK: Under the lock

    /// Where those of a crowd stand who lag most, as of the last survey, or as of now where there was none; nil of no crowd.
    static func lowest(ofCrowd key: RecoveryKey, _ state: inout State, at now: Int64) -> RecoveryPoint? {
        guard let bucket = state.buckets[key], bucket.sessions.isCrowd else { return nil }
        if let lowest = bucket.lowest { return lowest }
        let lowest = RecoveryPoint.earliest(of: bucket.sessions.stand(at: now)?.points ?? [])
        state.buckets[key]?.lowest = lowest
        return lowest
    }

    /// A session begins, perhaps further back than any other of a crowd. From there on it only comes nearer.
    static func noteLowest(_ session: LiveSession, _ state: inout State) {
        guard let lowest = state.buckets[session.key]?.lowest else { return }
        state.buckets[session.key]?.lowest = .earliest(of: [lowest, session.origin.point])
    }

    /// Somebody may come back.
    private static func isAwaited(_ key: RecoveryKey, _ state: State) -> Bool {
        state.restored?[key] != nil || state.buckets[key]?.sessions.ended.contains(where: \.isAwaited) ?? false
    }

    /// What is to be written down.
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

    /// Whether nobody of the key would be sent too little by what is written down, nor holds anybody back.
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
    /// Where those who are here stand, all together.
    struct Stand {
        var mark: Int?
        /// More than one where they cannot be compared.
        var points: [RecoveryPoint]
    }

    /// Nil where nobody is here.
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

/// Which mark somebody had proven when: whoever lags is told by it.
struct ProofPace {
    private var seconds: [(mark: Int, at: Int64)] = []
    private static let most = 128
    /// Milliseconds by which a place has to have moved to be written anew.
    private static let step: Int64 = 10_000

    mutating func note(_ mark: Int, at now: Int64) {
        guard mark > seconds.last?.mark ?? 0 else { return }
        seconds.append((mark, now))
        if seconds.count > Self.most { seconds.removeFirst() }
    }

    /// The highest that was proven by then.
    func mark(at time: Int64) -> Int { seconds.last { $0.at <= time }?.mark ?? 0 }

    /// Whether who is at a mark now, and lags, is written down too far back.
    func isWorthWriting(_ mark: Int, after point: RecoveryPoint) -> Bool {
        guard case .mark(let written) = point else { return true }
        guard let then = time(of: written), let now = time(of: mark) else { return false }
        return now - then >= Self.step
    }

    private func time(of mark: Int) -> Int64? { seconds.first { $0.mark >= mark }?.at ?? seconds.last?.at }
}
