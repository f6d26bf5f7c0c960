import DequeModule
import Wire

/// A piece that the app appends to a stream.
package struct StreamPart: Sendable, Equatable {
    package let form: StreamForm
    /// Of messages their JSON texts, with commas between.
    package private(set) var bytes: [UInt8]

    package init(_ form: StreamForm, _ bytes: [UInt8]) {
        self.form = form
        self.bytes = bytes
    }

    /// Whether another piece can be one append together with this one.
    func takes(_ other: StreamPart) -> Bool {
        form == other.form && bytes.count + other.bytes.count <= StreamProducer.mergedBytes
    }

    mutating func merge(_ other: StreamPart) {
        if form == .messages { bytes.append(UInt8(ascii: ",")) }
        bytes += other.bytes
    }
}

/// The number of one writer of a client.
package typealias WriterID = Int

/// What an app asks of a writer.
package enum WriterOrder: Sendable {
    case append(StreamPart)
    /// Is answered when all that was appended before is kept.
    case flush
    case close
}

/// What one writer has appended and the hub has not kept yet.
///
/// A part of `ChannelMachine`, and pure. Appends are numbered when they are sent first, and sent again under the same numbers until
/// each is answered: the hub knows by them what it has, so nothing is lost and nothing comes twice. What waits to be sent is put
/// together meanwhile, so a slow network costs fewer and larger appends and no memory.
package struct StreamProducer {
    /// How many appends may be on their way at once.
    static let window = 16
    /// How large an append may become by putting pieces together.
    static let mergedBytes = 16_384
    /// How many bytes may wait until `append` makes its caller wait.
    static let room = 262_144

    private struct Append {
        var part: StreamPart?
        var closes = false
        /// Calls to answer when it is kept.
        var calls: [CallID] = []
        /// Nil where it was not sent, or has to be sent again.
        var ref: String?
        var deadline: Moment = .zero
    }

    /// A write that is to be sent now.
    struct Write {
        let ref: String
        let event: String
        let payload: [UInt8]
    }

    private let name: String
    private let epoch: Int
    private var backoff: Backoff
    /// Of the first append of `numbered`.
    private var sequence = 0
    /// Those that were sent at least once, the oldest first.
    private var numbered: Deque<Append> = []
    private var waiting: Deque<Append> = []
    /// Calls that wait for room.
    private var blocked: Deque<(call: CallID, part: StreamPart)> = []
    private var bytes = 0
    private var isClosing = false
    /// Until then nothing is sent, because the hub has asked for patience.
    private var retryAt: Moment?
    /// Why nothing can be written any more.
    private(set) var failure: RoostError?
    /// Somebody was told of it.
    private var isTold = false

    init(name: String, epoch: Int, _ backoff: Backoff.Policy) {
        self.name = name
        self.epoch = epoch
        self.backoff = Backoff(backoff)
    }

    /// When `tick` has something to do.
    var nextDeadline: Moment? {
        retryAt ?? numbered.lazy.filter { $0.ref != nil }.map(\.deadline).min()
    }

    // MARK: What the app asks for

    mutating func take(_ order: WriterOrder, _ call: CallID) -> [ChannelAction] {
        if let failure { return [.answer(call, told(failure))] }
        if isClosing { return [.answer(call, .ended(reason: "The writer was closed already."))] }
        switch order {
        case .append(let part):
            guard blocked.isEmpty, hasRoom(for: part) else {
                blocked.append((call, part))
                return []
            }
            add(part)
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

    /// What a call fails with from here on. A refusal was about one append, of which somebody is told; the others are told that the
    /// writer is closed, and not that they are refused, which they never were.
    private mutating func told(_ failure: RoostError) -> RoostError {
        guard isTold, case .refused(let reason) = failure else {
            isTold = true
            return failure
        }
        return .ended(reason: "The hub refused an append of this writer (\(reason)). Make another writer to go on.")
    }

    /// The task that waits for a call was cancelled. An append that has no room yet is taken back; all else happens.
    mutating func cancel(_ call: CallID) -> [ChannelAction] {
        let isBlocked = blocked.contains { $0.call == call }
        guard isBlocked || (numbered + waiting).contains(where: { $0.calls.contains(call) }) else { return [] }
        blocked.removeAll { $0.call == call }
        for place in numbered.indices { numbered[place].calls.removeAll { $0 == call } }
        for place in waiting.indices { waiting[place].calls.removeAll { $0 == call } }
        return [.answer(call, .cancelled)]
    }

    private func hasRoom(for part: StreamPart) -> Bool { bytes == 0 || bytes + part.bytes.count <= Self.room }

    private mutating func add(_ part: StreamPart) {
        bytes += part.bytes.count
        // One that somebody waits for stays as it is, so that it is not put off again and again.
        if let last = waiting.indices.last, waiting[last].calls.isEmpty, waiting[last].part?.takes(part) == true {
            waiting[last].part?.merge(part)
        } else {
            waiting.append(Append(part: part))
        }
    }

    // MARK: Sending

    /// The next write that is to be sent in a joined channel; nil while there is none.
    mutating func next(_ refs: inout Refs, deadline: Moment) -> Write? {
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
        return Write(ref: ref, event: append.closes ? "close" : "append", payload: payload(append, sequence + place))
    }

    private func payload(_ append: Append, _ number: Int) -> [UInt8] {
        JSONWriter.object { write in
            write.member("producer", name)
            write.member("epoch", epoch)
            write.member("seq", number)
            guard let part = append.part else { return }
            switch part.form {
            case .text: write.member("delta", String(decoding: part.bytes, as: UTF8.self))
            case .messages: write.member("messages", json: [UInt8(ascii: "[")] + part.bytes + [UInt8(ascii: "]")])
            case .bytes:
                var text: [UInt8] = []
                Base64.append(part.bytes, to: &text)
                write.member("base64", String(decoding: text, as: UTF8.self))
            }
        }
    }

    /// The socket or the channel is gone: what was not answered is sent again in the next.
    mutating func lose() {
        for place in numbered.indices { numbered[place].ref = nil }
        retryAt = nil
    }

    // MARK: Answers

    func awaits(_ ref: String) -> Bool { numbered.contains { $0.ref == ref } }

    /// The hub has kept an append, and with it all before it.
    mutating func kept(_ ref: String) -> [ChannelAction] {
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
            add(part)
            actions.append(.answer(call, nil))
        }
        return actions
    }

    /// The hub has refused an append: for good, or so that the same may succeed later.
    mutating func refused(_ ref: String, _ reason: String, _ at: Instant) -> [ChannelAction] {
        guard let place = numbered.firstIndex(where: { $0.ref == ref }) else { return [] }
        let error = RoostError(refusal: reason)
        if numbered[place].closes, reason.hasPrefix("StreamCloseFailed") {
            // The stream is open still: its writer may close it again, or go on.
            isClosing = false
            return numbered.remove(at: place).calls.map { .answer($0, error) }
        }
        guard NextAction(reason: reason) != .giveUp else { return fail(error) }
        // Those behind it are refused as well, because it is missing.
        lose()
        retryAt = at.now + backoff.next(at.random)
        return []
    }

    /// Does what is due: an append that got no answer in time is sent again, and all behind it.
    mutating func tick(_ now: Moment) {
        guard let nextDeadline, nextDeadline <= now else { return }
        lose()
    }

    /// Nothing can be written any more, for this reason.
    mutating func fail(_ error: RoostError) -> [ChannelAction] {
        guard failure == nil else { return [] }
        failure = error
        let calls = (numbered + waiting).flatMap(\.calls) + blocked.map(\.call)
        (numbered, waiting, blocked, bytes, retryAt) = ([], [], [], 0, nil)
        isTold = !calls.isEmpty
        return calls.map { .answer($0, error) }
    }
}
