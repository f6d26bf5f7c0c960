import DequeModule
import Wire

/// A piece that the app appends to a stream.
package struct StreamPart: Sendable, Equatable {
    package let form: StreamForm
    /// For messages, their JSON texts separated by commas.
    package private(set) var bytes: [UInt8]

    package init(_ form: StreamForm, _ bytes: [UInt8]) {
        self.form = form
        self.bytes = bytes
    }

    /// Whether another piece can be merged with this one into one append.
    func takes(_ other: StreamPart) -> Bool {
        form == other.form && bytes.count + other.bytes.count <= StreamProducer.mergedBytes
    }

    mutating func mergePart(_ other: StreamPart) {
        if form == .messages { bytes.append(UInt8(ascii: ",")) }
        bytes += other.bytes
    }
}

/// Identifies a writer of a client.
package typealias WriterID = Int

/// The app's order to a writer.
package enum WriterOrder: Sendable {
    case append(StreamPart)
    /// Answered once all earlier appends are stored by the hub.
    case flush
    case close
}

/// The appends of one writer that the hub has not stored yet.
///
/// A part of `ChannelMachine`, and pure. Appends are numbered when they are first sent, and sent again under the same
/// numbers until each is answered: the numbers tell the hub what it has, so nothing is lost or duplicated. Waiting
/// pieces are merged in the meantime, so a slow network leads to fewer and larger appends, and not to more memory.
package struct StreamProducer {
    /// The most appends in flight.
    static let window = 16
    /// The largest append that merging pieces may yield.
    static let mergedBytes = 16_384
    /// The most bytes that may wait before `append` makes its caller wait.
    static let room = 262_144

    private struct Append {
        var part: StreamPart?
        var closes = false
        /// Calls to answer once it is stored.
        var calls: [CallID] = []
        /// Nil if it was not sent, or has to be sent again.
        var ref: String?
        var deadline: Moment = .zero
    }

    /// A write to send now.
    struct Write {
        let ref: String
        let event: String
        let payload: [UInt8]
    }

    private let name: String
    private let epoch: Int
    private var backoff: Backoff
    /// The number of the first append of `numbered`.
    private var sequence = 0
    /// Appends that were sent at least once, the oldest first.
    private var numbered: Deque<Append> = []
    private var waiting: Deque<Append> = []
    /// Calls that wait for room.
    private var blocked: Deque<(call: CallID, part: StreamPart)> = []
    private var bytes = 0
    private var isClosing = false
    /// Nothing is sent until then, because the hub asked to wait.
    private var retryAt: Moment?
    /// The reason why nothing can be written any more.
    private(set) var failure: RoostError?
    /// Set once a caller was told of it.
    private var isTold = false

    init(name: String, epoch: Int, _ backoff: Backoff.Policy) {
        self.name = name
        self.epoch = epoch
        self.backoff = Backoff(backoff)
    }

    /// The next time at which `handleDeadlines` has work.
    var nextDeadline: Moment? {
        retryAt ?? numbered.lazy.filter { $0.ref != nil }.map(\.deadline).min()
    }

    // MARK: Orders of the app

    mutating func takeOrder(_ order: WriterOrder, _ call: CallID) -> [ChannelAction] {
        if let failure { return [.answer(call, errorForCaller(failure))] }
        if isClosing { return [.answer(call, .ended(reason: "The writer was closed already."))] }
        switch order {
        case .append(let part):
            guard blocked.isEmpty, hasRoom(for: part) else {
                blocked.append((call, part))
                return []
            }
            addPart(part)
            return [.answer(call, nil)]
        case .flush:
            if let last = waiting.indices.last {
                waiting[last].calls.append(call)
            } else if let last = numbered.indices.last {
                numbered[last].calls.append(call)
            } else {
                return [.answer(call, nil)]
            }
            return []
        case .close:
            isClosing = true
            waiting.append(Append(closes: true, calls: [call]))
            return []
        }
    }

    /// The error for further calls. A refusal concerns one append, whose caller is told of it; other callers are told
    /// that the writer has ended, and not that they were refused, which is not true of them.
    private mutating func errorForCaller(_ failure: RoostError) -> RoostError {
        guard isTold, case .refused(let reason) = failure else {
            isTold = true
            return failure
        }
        return .ended(reason: "The hub refused an append of this writer (\(reason)). Make another writer to go on.")
    }

    /// Handles the cancellation of a task that waits for a call. An append that has no room yet is withdrawn;
    /// everything else still happens.
    mutating func cancelCall(_ call: CallID) -> [ChannelAction] {
        let isBlocked = blocked.contains { $0.call == call }
        guard isBlocked || (numbered + waiting).contains(where: { $0.calls.contains(call) }) else { return [] }
        blocked.removeAll { $0.call == call }
        for place in numbered.indices { numbered[place].calls.removeAll { $0 == call } }
        for place in waiting.indices { waiting[place].calls.removeAll { $0 == call } }
        return [.answer(call, .cancelled)]
    }

    private func hasRoom(for part: StreamPart) -> Bool { bytes == 0 || bytes + part.bytes.count <= Self.room }

    private mutating func addPart(_ part: StreamPart) {
        bytes += part.bytes.count
        // An append that a caller waits for is not extended, so that it is not delayed again and again.
        if let last = waiting.indices.last, waiting[last].calls.isEmpty, waiting[last].part?.takes(part) == true {
            waiting[last].part?.mergePart(part)
        } else {
            waiting.append(Append(part: part))
        }
    }

    // MARK: Sending

    /// The next write for a joined channel; nil if there is none.
    mutating func nextWrite(_ refs: inout Refs, deadline: Moment) -> Write? {
        guard failure == nil, retryAt == nil else { return nil }
        var place = numbered.firstIndex { $0.ref == nil }
        if place == nil, numbered.count < Self.window, let append = waiting.popFirst() {
            numbered.append(append)
            place = numbered.indices.last
        }
        guard let place else { return nil }
        let ref = refs.next()
        numbered[place].ref = ref
        numbered[place].deadline = deadline
        let append = numbered[place]
        return Write(
            ref: ref, event: append.closes ? "close" : "append", payload: writePayload(append, sequence + place))
    }

    private func writePayload(_ append: Append, _ number: Int) -> [UInt8] {
        JSONWriter.object { write in
            write.writeMember("producer", name)
            write.writeMember("epoch", epoch)
            write.writeMember("seq", number)
            guard let part = append.part else { return }
            switch part.form {
            case .text: write.writeMember("delta", String(decoding: part.bytes, as: UTF8.self))
            case .messages: write.writeMember("messages", json: [UInt8(ascii: "[")] + part.bytes + [UInt8(ascii: "]")])
            case .bytes:
                var text: [UInt8] = []
                Base64.append(part.bytes, to: &text)
                write.writeMember("base64", String(decoding: text, as: UTF8.self))
            }
        }
    }

    /// The socket or the channel is gone: unanswered appends are sent again in the next one.
    mutating func connectionLost() {
        for place in numbered.indices { numbered[place].ref = nil }
        retryAt = nil
    }

    // MARK: Answers

    func awaitsReply(_ ref: String) -> Bool { numbered.contains { $0.ref == ref } }

    /// The hub has stored an append, and with it all earlier ones.
    mutating func writeStored(_ ref: String) -> [ChannelAction] {
        guard let place = numbered.firstIndex(where: { $0.ref == ref }) else { return [] }
        backoff.reset()
        var actions: [ChannelAction] = []
        for _ in 0...place {
            let append = numbered.removeFirst()
            sequence += 1
            bytes -= append.part?.bytes.count ?? 0
            actions += append.calls.map { .answer($0, nil) }
        }
        while let (call, part) = blocked.first, hasRoom(for: part) {
            blocked.removeFirst()
            addPart(part)
            actions.append(.answer(call, nil))
        }
        return actions
    }

    /// The hub has refused an append, for good or for now.
    mutating func writeRefused(_ ref: String, _ reason: String, _ at: Instant) -> [ChannelAction] {
        guard let place = numbered.firstIndex(where: { $0.ref == ref }) else { return [] }
        let error = RoostError(refusal: reason)
        if numbered[place].closes, reason.hasPrefix("StreamCloseFailed") {
            // The stream is still open: its writer may close it again, or continue.
            isClosing = false
            return numbered.remove(at: place).calls.map { .answer($0, error) }
        }
        guard NextAction(reason: reason) != .giveUp else { return failCalls(error) }
        // Later appends are refused as well, because this one is missing.
        connectionLost()
        retryAt = at.now + backoff.nextPause(at.random)
        return []
    }

    /// Handles what is due: an append without an answer in time is sent again, with all later ones.
    mutating func handleDeadlines(_ now: Moment) {
        guard let nextDeadline, nextDeadline <= now else { return }
        connectionLost()
    }

    /// Nothing can be written any more, for this reason.
    mutating func failCalls(_ error: RoostError) -> [ChannelAction] {
        guard failure == nil else { return [] }
        failure = error
        let calls = (numbered + waiting).flatMap(\.calls) + blocked.map(\.call)
        (numbered, waiting, blocked, bytes, retryAt) = ([], [], [], 0, nil)
        isTold = !calls.isEmpty
        return calls.map { .answer($0, error) }
    }
}
