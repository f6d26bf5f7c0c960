import Streams
import Wire

/// One request that was passed on: what the backend has answered, and what of that is kept.
///
/// One request about its stream is under way at a time. Appends are numbered, so that one whose answer was lost may be repeated.
final class ForwardExchange {
    enum Step: Equatable {
        case goOn
        case fails(ForwardFailure)
        /// The stream has ended, by this or otherwise.
        case over
    }

    private enum Ask: Equatable {
        /// Messages, with commas between them.
        case append([UInt8], closes: Bool)
        case abort
    }

    let forward: StreamForward
    private(set) var failure: ForwardFailure?
    private(set) var isFailing = false
    private(set) var isOver = false
    /// What the backend says itself of its refusal: a JSON value.
    private(set) var ownError: [UInt8]?

    private var answer: ForwardedAnswer?
    private let mostOfMessage: Int
    /// The backend's answer has to begin by then; nil behind that.
    private var deadline: ContinuousClock.Instant?
    /// Messages that wait to be appended, with commas between them.
    private var waiting: [UInt8] = []
    private var hasMessages = false
    private var refusal: [UInt8] = []
    private var isPaused = false
    private var isWhole = false
    private var asked: Ask?
    /// Of `asked`, once it is under way.
    private var isUnderWay = false
    private var retryAt: ContinuousClock.Instant?
    private var retries = 0
    private var sequence = 0

    /// Bytes that may wait, and of a refusal.
    private static let (mostWaiting, mostOfRefusal) = (262_144, 16_384)
    private static let retryInterval = Duration.milliseconds(250)
    private static let mostRetries = 40

    init(_ forward: StreamForward, deadline: ContinuousClock.Instant, mostOfMessage: Int) {
        self.forward = forward
        self.deadline = deadline
        self.mostOfMessage = mostOfMessage
    }

    // MARK: The backend

    func isLate(at now: ContinuousClock.Instant) -> Bool { deadline.map { $0 <= now } ?? false }

    func answered(_ status: Int) { deadline = nil }

    /// - Returns: false where there is no room.
    func take(_ piece: UnsafeBufferPointer<UInt8>, _ status: Int, _ type: String) -> Bool {
        guard failure == nil else { return true }
        guard 200..<300 ~= status else {
            refusal += piece.prefix(max(0, Self.mostOfRefusal - refusal.count))
            return true
        }
        guard waiting.count < Self.mostWaiting else {
            isPaused = true
            return false
        }
        if answer == nil {
            answer = ForwardedAnswer(contentType: type, eventMember: forward.eventMember, most: mostOfMessage)
        }
        do throws(ForwardedAnswer.Failure) {
            add(try answer?.take(piece) ?? [])
        } catch {
            failure = .invalid
        }
        return true
    }

    func ended(_ status: Int, _ problem: String?) {
        deadline = nil
        guard failure == nil else { return }
        guard problem == nil else {
            failure = status < 0 ? .unreachable : .broken
            return
        }
        guard 200..<300 ~= status else {
            ownError = object(refusal)
            failure = .refused
            return
        }
        do throws(ForwardedAnswer.Failure) {
            add(try answer?.end() ?? [])
            isWhole = true
        } catch {
            failure = .invalid
        }
    }

    /// Nil if the bytes are no JSON object.
    private func object(_ bytes: [UInt8]) -> [UInt8]? {
        do {
            let json = try JSON(parsing: bytes)
            return json.kind == .object ? Array(json.bytes) : nil
        } catch {
            return nil
        }
    }

    private func add(_ messages: [[UInt8]]) {
        for message in messages {
            if !waiting.isEmpty { waiting.append(UInt8(ascii: ",")) }
            waiting += message
            hasMessages = true
        }
    }

    /// Whether the backend's answer was stopped and may go on.
    func resumes() -> Bool {
        guard isPaused, waiting.count < Self.mostWaiting else { return false }
        isPaused = false
        return true
    }

    /// What was answered so far stays; behind it comes the event, and the end.
    func fail(saying event: [UInt8]) {
        isFailing = true
        add([event])
    }

    // MARK: The stream

    /// Its stream is asked again in a while.
    var waits: Bool { retryAt != nil }

    func isDue(at now: ContinuousClock.Instant) -> Bool { retryAt.map { $0 <= now } ?? true }

    /// What is to be asked of the stream next; nil where that is nothing for now.
    func next(at now: ContinuousClock.Instant) -> StreamRequest? {
        guard !isUnderWay, retryAt.map({ $0 <= now }) ?? true else { return nil }
        retryAt = nil
        if asked == nil { asked = nextAsk() }
        guard let asked else { return nil }
        isUnderWay = true
        switch asked {
        case .abort: return .abort(forward.generation)
        case .append(let messages, let closes):
            var append = StreamAppend(
                body: messages.isEmpty ? [] : [UInt8(ascii: "[")] + messages + [UInt8(ascii: "]")])
            append.closes = closes
            append.generation = forward.generation
            append.producer = ProducerStamp(id: "forward", epoch: 0, sequence: sequence)
            append.bearer = forward.bearer
            return .append(append)
        }
    }

    private func nextAsk() -> Ask? {
        if !waiting.isEmpty {
            defer { waiting = [] }
            return .append(waiting, closes: isWhole && !isFailing)
        }
        if isFailing { return .abort }
        guard isWhole else { return nil }
        // An empty answer says that the backend writes the stream by itself.
        guard hasMessages else {
            isOver = true
            return nil
        }
        return .append([], closes: true)
    }

    func settle(_ answer: StreamAnswer, at now: ContinuousClock.Instant) -> Step {
        isUnderWay = false
        guard let done = asked else { return .goOn }
        switch answer {
        case .appended, .done, .created, .existed:
            asked = nil
            retries = 0
            sequence += 1
            if case .append(_, true) = done { return .over }
            return done == .abort ? .over : .goOn
        case .refused(.unavailable), .refused(.noRoom):
            retries += 1
            guard retries <= Self.mostRetries else { return .over }
            retryAt = now + Self.retryInterval
            return .goOn
        case .refused(.closeFailed):
            asked = nil
            return isFailing ? .over : .fails(.row)
        case .refused(.ended), .refused(.otherGeneration), .refused(.notFound), .refused(.gone): return .over
        case .refused:
            asked = isFailing ? .abort : nil
            return isFailing && done != .abort ? .goOn : isFailing ? .over : .fails(.invalid)
        }
    }
}
