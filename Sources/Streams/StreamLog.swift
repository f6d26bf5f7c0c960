import Wire

/// The rules of one stream: decides requests, and derives the stream's state from its records.
///
/// A request is decided, its record is made durable, and then applied; reading a stream from disk applies the same records. So every
/// acknowledged fact is written, and a restart knows everything that answers said. Pure: time is passed in, in milliseconds since 1970.
package struct StreamLog: Sendable, Equatable {
    package let id: StreamID
    package let name: StreamName
    package let configuration: StreamConfiguration
    package let createdAt: Int64
    /// The earliest offset kept.
    package private(set) var start = 0
    /// The offset after its last byte.
    package private(set) var end = 0
    /// The number of bytes kept.
    package var kept: Int { end - start }
    package private(set) var ending: StreamEnding?
    private var producers: [Name: StreamCheckpoint.Producer] = [:]
    /// The greatest `Stream-Seq`: one for the stream, across all writers.
    private var sequence: String?
    /// The producer whose close ended the stream.
    private var closer: ProducerStamp?
    /// An end that waits for its row.
    package private(set) var closing: Closing?
    private var attempts = 0

    package struct Closing: Sendable, Equatable {
        package let key: StreamCommitKey
        package let bytes: [UInt8]
        package let ending: StreamEnding
        let producer: ProducerStamp?
        let sequence: String?
    }

    /// The producers that one stream remembers; each costs some bytes for the stream's whole life.
    private static let mostProducers = 1000

    package enum Decision: Sendable, Equatable {
        case refused(StreamRefusal)
        /// The same append is already there. The stamp is the producer's newest.
        case repeated(ProducerStamp?)
        case write(StreamRecord, stamp: ProducerStamp?)
    }

    /// Nil if the record is not a stream's first.
    package init?(_ record: StreamRecord) {
        guard case .created(let id, let name, let configuration, let at) = record else { return nil }
        self.id = id
        self.name = name
        self.configuration = configuration
        createdAt = at
    }

    package private(set) var wasHeld = false

    /// Whether the absence of a producer can be noticed: it named itself, or held a connection.
    package var hasProducer: Bool { wasHeld || !producers.isEmpty }

    package var producerCount: Int { producers.count }

    /// Up to `limit` producers that number their appends; the one that appended last comes first.
    package func newestProducers(limit: Int) -> [InspectedProducer] {
        var newest: [InspectedProducer] = []
        for (id, known) in producers {
            if newest.count == limit, let last = newest.last, known.end <= last.end { continue }
            let place = newest.firstIndex { $0.end < known.end } ?? newest.count
            newest.insert(
                InspectedProducer(id: id.text, epoch: known.epoch, sequence: known.sequence, end: known.end), at: place)
            if newest.count > limit { newest.removeLast() }
        }
        return newest
    }

    package func makeSnapshot(_ status: StreamStatus) -> StreamSnapshot {
        StreamSnapshot(
            id: id, name: name, configuration: configuration, start: start, end: end,
            status: ending.map { .ended($0) } ?? status)
    }

    // MARK: Decisions

    /// - Parameters:
    ///   - limit: the bytes that may be kept of the stream.
    ///   - isWindow: older bytes make room, so only a single append is limited.
    ///   - now: milliseconds since 1970.
    package func decideAppend(_ append: StreamAppend, limit: Int, isWindow: Bool = false, at now: Int64) -> Decision {
        if let meant = append.generation, meant != id { return .refused(.otherGeneration(makeSnapshot(.open))) }
        // A fenced producer is told so even if the stream has ended; otherwise the end takes precedence over everything else (section 5.2).
        if let stamp = append.producer, let known = producers[stamp.id], stamp.epoch < known.epoch {
            return .refused(.staleEpoch(current: known.epoch))
        }
        if let ending { return decideAppend(append, behind: ending) }
        if append.body.isEmpty, !append.closes { return .refused(.emptyBody) }
        if !append.body.isEmpty, let type = append.contentType, !configuration.acceptsType(type) {
            return .refused(.contentType(expected: configuration.contentType))
        }
        if let stamp = append.producer {
            switch order(of: stamp, at: now) {
            case .next: break
            case .repeated(let newest): return .repeated(newest)
            case .refused(let refusal): return .refused(refusal)
            }
        }
        if let text = append.sequence, let sequence, !sequence.utf8.lexicographicallyPrecedes(text.utf8) {
            return .refused(.sequenceRegression)
        }
        let bytes: [UInt8]
        do throws(StreamRefusal) {
            bytes = try configuration.content.storedBytes(append.body, isFirst: false)
        } catch {
            return .refused(error)
        }
        guard (isWindow ? 0 : kept) + bytes.count <= limit else { return .refused(.streamTooLarge(limit: limit)) }
        let ending = append.closes ? StreamEnding(.complete, at: now) : nil
        return .write(
            .appended(bytes, ending, producer: append.producer, sequence: append.sequence), stamp: append.producer)
    }

    /// A close may be repeated by its producer, and by any client that sends only a close.
    private func decideAppend(_ append: StreamAppend, behind ending: StreamEnding) -> Decision {
        if let stamp = append.producer, stamp == closer { return .repeated(stamp) }
        if append.closes, append.body.isEmpty, append.producer == nil, ending.reason == .complete {
            return .repeated(nil)
        }
        return .refused(.ended(makeSnapshot(.open)))
    }

    private enum Order {
        case next
        case repeated(ProducerStamp)
        case refused(StreamRefusal)
    }

    /// How far an epoch may lead, so that a producer fenced by it can always begin a later one: beyond the last epoch,
    /// or beyond the microseconds since 1970, which some producers use.
    private static let (longestStep, longestLead) = (1_000_000, 86_400_000_000)

    private func latestEpoch(after last: Int, at now: Int64) -> Int {
        min(ProducerStamp.largest, max(last &+ Self.longestStep, Int(now) &* 1000 &+ Self.longestLead))
    }

    private func order(of stamp: ProducerStamp, at now: Int64) -> Order {
        let last = producers[stamp.id]?.epoch ?? 0
        let latest = latestEpoch(after: last, at: now)
        if stamp.epoch > last, stamp.epoch > latest { return .refused(.epochTooFar(most: latest)) }
        guard let known = producers[stamp.id] else {
            guard producers.count < Self.mostProducers else {
                return .refused(.tooManyProducers)
            }
            return stamp.sequence == 0 ? .next : .refused(.sequenceGap(expected: 0, received: stamp.sequence))
        }
        if stamp.epoch > known.epoch {
            return stamp.sequence == 0 ? .next : .refused(.epochMustBeginAtZero)
        }
        if stamp.sequence <= known.sequence {
            return .repeated(ProducerStamp(id: stamp.id, epoch: known.epoch, sequence: known.sequence))
        }
        guard stamp.sequence == known.sequence &+ 1 else {
            return .refused(.sequenceGap(expected: known.sequence &+ 1, received: stamp.sequence))
        }
        return .next
    }

    // MARK: Records

    package mutating func applyRecord(_ record: StreamRecord) {
        switch record {
        case .created: break
        case .continued(let checkpoint):
            (start, end) = (checkpoint.start, checkpoint.start)
            (producers, sequence) = (checkpoint.producers, checkpoint.sequence)
            (wasHeld, attempts) = (checkpoint.wasHeld, checkpoint.attempts)
        case .held: wasHeld = true
        case .closing(let bytes, let ending, let producer, let sequence):
            attempts += 1
            closing = Closing(
                key: StreamCommitKey(id: id, attempt: attempts), bytes: bytes, ending: ending, producer: producer,
                sequence: sequence)
        case .closed(let row):
            guard let closing else { break }
            self.closing = nil
            var ending = closing.ending
            ending.row = row
            applyRecord(.appended(closing.bytes, ending, producer: closing.producer, sequence: closing.sequence))
        case .reopened: closing = nil
        case .appended(let bytes, let ending, let producer, let sequence):
            end += bytes.count
            self.ending = ending ?? self.ending
            if let producer {
                producers[producer.id] = .init(epoch: producer.epoch, sequence: producer.sequence, end: end)
            }
            if ending != nil { closer = producer }
            if ending?.reason == .aborted { fenceProducers() }
            self.sequence = sequence ?? self.sequence
        case .ended(let ending):
            self.ending = self.ending ?? ending
            if ending.reason == .aborted { fenceProducers() }
        }
    }

    /// The first content of a file that no longer keeps anything before an offset.
    package func makeCheckpoint(at start: Int) -> StreamCheckpoint {
        StreamCheckpoint(
            start: start, producers: producers, sequence: sequence, wasHeld: wasHeld, attempts: attempts)
    }

    /// Drops the content before an offset.
    package mutating func dropBytes(before start: Int) { self.start = max(self.start, start) }

    /// A producer that was silent for too long must begin a new epoch.
    private mutating func fenceProducers() {
        for id in producers.keys { producers[id]?.epoch &+= 1 }
    }
}
