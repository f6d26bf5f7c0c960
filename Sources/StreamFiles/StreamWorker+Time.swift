import Streams

/// The effects of time on streams: those without a producer end, and expired ones are removed.
extension StreamWorker {
    private static let sweepInterval = Duration.milliseconds(500)

    func isExpired(_ stream: KeptStream, at now: Int64) -> Bool {
        switch stream.log.configuration.lifetime {
        case .unlimited: false
        case .idle(let seconds): now - stream.usedAt >= Int64(seconds) * 1000
        case .until(let time): now >= time
        }
    }

    func sweepStreams() {
        sweepAt = .now + Self.sweepInterval
        hasWarned = false
        if !retired.isEmpty { retired = retired.filter { $0.value.buffer != nil } }
        let (now, monotonic) = (Self.unix, Self.monotonic)
        (figures.open, figures.stalled, figures.connectedProducers) = (0, 0, 0)
        var over: [KeptStream] = []
        for stream in Array(streams.values) {
            // A stream that is watched is being read.
            if stream.buffer.isWatched { noteUse(of: stream, at: now) }
            if stream.waiting != nil {
                figures.open += 1
                if !giveUpClosing(stream, at: now) { askOutcome(of: stream) }
            } else if isExpired(stream, at: now) {
                over.append(stream)
            } else if let ending = stream.log.ending {
                if isOld(ending, of: stream, at: now) { over.append(stream) }
            } else if !giveUpClosing(stream, at: now) {
                figures.open += 1
                look(after: stream, at: now, monotonic)
                moveWindow(of: stream)
                if stream.lease.isStalled { figures.stalled += 1 }
                figures.connectedProducers += stream.lease.connections.count
            }
        }
        if sharing == nil {
            for stream in over { removeStream(stream) }
        } else if !over.isEmpty {
            _ = removeShared(over)
        }
        commitBatches()
    }

    /// Whether the stream was kept long enough after its end.
    func isOld(_ ending: StreamEnding, of stream: KeptStream, at now: Int64) -> Bool {
        if case .unlimited = stream.log.configuration.lifetime {
            now - ending.at >= setup.limits.keptAfterEnd
        } else {
            false
        }
    }

    private func look(after stream: KeptStream, at now: Int64, _ monotonic: Int64) {
        switch stream.lease.advanceClock(to: monotonic, setup.lease, hasProducer: stream.log.hasProducer) {
        case .aborted:
            // A hub that is cut off knows nothing of producers elsewhere.
            guard sharing?.mayWrite != false else { break }
            abortStream(stream, at: now)
        case .stalled, .open: notifyLoops(stream.publishStatus(), of: stream.buffer)
        case nil: break
        }
    }
}
