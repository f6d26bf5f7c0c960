import Streams
import Wire

/// One request that was passed on: the backend's answer so far, and what is kept of it.
///
/// One request about its stream is under way at a time. Appends are numbered, so that one whose answer was lost can be repeated.
final class ForwardExchange {
    enum Step: Equatable {
        case goOn
        case fails(ForwardFailure)
        /// The stream has ended, by this exchange or otherwise.
        case over
    }

    private enum Ask: Equatable {
        /// Messages, separated by commas.
        case append([UInt8], closes: Bool)
        case abort
    }

    let forward: StreamForward
    private(set) var failure: ForwardFailure?
    private(set) var isFailing = false
    private(set) var isOver = false
    /// The backend's own account of its refusal: a JSON object.
    private(set) var ownError: [UInt8]?

    private var answer: ForwardedAnswer?
    private let mostOfMessage: Int
    /// When the backend's answer must have begun; nil once it has.
    private var deadline: ContinuousClock.Instant?
    /// Messages that wait to be appended, separated by commas.
    private var waiting: [UInt8] = []
    private var hasMessages = false
    private var refusal: [UInt8] = []
    private var isPaused = false
    private var isWhole = false
    private var asked: Ask?
    /// `asked` has been submitted.
    private var isUnderWay = false
    private var retryAt: ContinuousClock.Instant?
    private var retries = 0
    private var sequence = 0

    /// The limits of waiting bytes, and of a refusal's bytes.
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

    func answerBegan(_ status: Int) { deadline = nil }

    /// - Returns: false if there is no room.
    func takePiece(_ piece: UnsafeBufferPointer<UInt8>, _ status: Int, _ type: String) -> Bool {
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
            addMessages(try answer?.takeBytes(piece) ?? [])
        } catch {
            failure = .invalid
        }
        return true
    }

    func answerEnded(_ status: Int, _ problem: String?) {
        deadline = nil
        guard failure == nil else { return }
        guard problem == nil else {
            failure = status < 0 ? .unreachable : .broken
            return
        }
        guard 200..<300 ~= status else {
            ownError = parseObject(refusal)
            failure = .refused
            return
        }
        do throws(ForwardedAnswer.Failure) {
            addMessages(try answer?.finishAnswer() ?? [])
            isWhole = true
        } catch {
            failure = .invalid
        }
    }

    /// Nil if the bytes are not a JSON object.
    private func parseObject(_ bytes: [UInt8]) -> [UInt8]? {
        do {
            let json = try JSON(parsing: bytes)
            return json.kind == .object ? Array(json.bytes) : nil
        } catch {
            return nil
        }
    }

    private func addMessages(_ messages: [[UInt8]]) {
        for message in messages {
            if !waiting.isEmpty { waiting.append(UInt8(ascii: ",")) }
            waiting += message
            hasMessages = true
        }
    }

    /// Resumes a paused answer if there is room, and returns whether it did.
    func resumeIfPaused() -> Bool {
        guard isPaused, waiting.count < Self.mostWaiting else { return false }
        isPaused = false
        return true
    }

    /// Keeps the answer so far, followed by the event and the end.
    func fail(saying event: [UInt8]) {
        isFailing = true
        addMessages([event])
    }

    // MARK: The stream

    /// The request about the stream is retried in a while.
    var waits: Bool { retryAt != nil }

    func isDue(at now: ContinuousClock.Instant) -> Bool { retryAt.map { $0 <= now } ?? true }

    /// The next request about the stream; nil if there is none for now.
    func nextRequest(at now: ContinuousClock.Instant) -> StreamRequest? {
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
        // An empty answer means that the backend writes the stream itself.
        guard hasMessages else {
            isOver = true
            return nil
        }
        return .append([], closes: true)
    }

    func handleAnswer(_ answer: StreamAnswer, at now: ContinuousClock.Instant) -> Step {
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
