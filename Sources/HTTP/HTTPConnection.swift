/// One connection's side of HTTP/1.1 (RFC 9112), without the socket: bytes go in, and `advance` returns the next step.
/// Bytes to send collect in `output`.
///
/// Requests are handled one at a time: the next one waits until the socket has taken the response to the one before. So
/// a client controls neither the order of responses nor the memory that they take.
///
/// A pure value; its user supplies the clock, in seconds that never decrease. It is not copyable, because an object
/// that stores it would otherwise copy all of it to read one property.
package struct HTTPConnection: ~Copyable, Sendable {
    private enum Phase {
        case head, judging, body, pieces, complete, answering, sending, sent, streaming, skipping, lingering, closed
    }

    private let limits: Limits
    private var phase = Phase.head
    private var parser: HTTPHeadParser
    private var decoder = HTTPBodyDecoder(.none)
    /// Bytes that were not looked at yet, or that belong to an incomplete head.
    private var unread = UnreadBytes()
    private var content: [UInt8] = []
    private var framing = HTTPBodyFraming.none
    private var isHead = false
    /// The current request is HTTP/1.0, whose responses cannot be chunked.
    package private(set) var isHTTP10 = false
    private var keepsAlive = true
    private var awaitsContinue = false
    /// A piece of the body is being processed.
    private var isPaused = false
    /// The body of the request being answered is still to come, and must be skipped.
    private var skipsBody = false
    /// The response to a request that cannot be processed, until `advance` returns it.
    private var refusal: HTTPResponse?
    private var hasBegunHead = false
    private var lingered = 0
    private var deadline: Int32
    private var queued: [UInt8] = []
    private static let keptBytes = 512
    private var taken = 0

    /// Set when the hub is shutting down: the next response is the last.
    package var isLast = false

    /// - Parameter second: the current time.
    package init(limits: Limits, at second: Int32) {
        self.limits = limits
        parser = HTTPHeadParser(limits: limits.head)
        deadline = second + limits.headSeconds
    }

    // MARK: Bytes in

    /// Call with received bytes, then again with what is left of them, until it returns `wait`.
    ///
    /// - Parameters:
    ///   - input: consumed bytes are cut off.
    ///   - second: the current time.
    package mutating func advance(_ input: inout UnsafeRawBufferPointer, at second: Int32) -> Step {
        while true {
            switch phase {
            case .head:
                if let step = readHead(&input, at: second) { return step }
            case .body:
                if let step = readBody(&input, at: second) { return step }
            case .pieces:
                if let step = readPiece(&input, at: second) { return step }
            case .complete:
                phase = .answering
                let body = content
                content = []
                return .perform(body: body)
            case .judging, .answering:
                if let response = refusal {
                    refusal = nil
                    return .refuse(response)
                }
                unread.keep(&input)
                return .wait
            case .sending:
                // Input behind the last response is never processed.
                if keepsAlive { unread.keep(&input) } else { unread.discard(&input) }
                guard queued.isEmpty else { return .wait }
                phase = .sent
            case .streaming:
                // Reads on all the same, so that the client's end of file is noticed at once.
                unread.keep(&input)
                guard wantsInput else {
                    phase = .closed
                    continue
                }
                return .wait
            case .sent:
                guard keepsAlive else {
                    phase = .lingering
                    deadline = second + limits.lingerSeconds
                    drop()
                    return .shutDown
                }
                guard skipsBody else {
                    beginHead(at: second)
                    continue
                }
                skipsBody = false
                decoder = HTTPBodyDecoder(framing)
                phase = .skipping
                deadline = second + limits.bodySeconds
            case .skipping:
                if let step = skipBody(&input, at: second) { return step }
            case .lingering:
                lingered += input.count
                unread.discard(&input)
                guard lingered < limits.lingerBytes else {
                    phase = .closed
                    continue
                }
                return .wait
            case .closed:
                return .close
            }
        }
    }

    private mutating func beginHead(at second: Int32) {
        phase = .head
        hasBegunHead = false
        isHead = false
        framing = .none
        deadline = second + limits.idleSeconds
    }

    private mutating func readHead(_ input: inout UnsafeRawBufferPointer, at second: Int32) -> Step? {
        if !unread.isEmpty { unread.keep(&input) }
        let pending = unread
        guard !pending.isEmpty || !input.isEmpty else { return .wait }
        if !hasBegunHead {
            hasBegunHead = true
            deadline = second + limits.headSeconds
        }
        switch pending.isEmpty ? parser.parse(input) : pending.withUnsafeBytes({ parser.parse($0) }) {
        case .incomplete:
            unread.keep(&input)
            return .wait
        case .complete(let head, let length):
            unread.consume(length, &input)
            framing = head.body
            isHead = head.method == "HEAD"
            isHTTP10 = head.isHTTP10
            keepsAlive = head.keepsAlive && !head.isHTTP10
            awaitsContinue = head.expectsContinue && !head.isHTTP10
            phase = .judging
            return .judge(head)
        case .refused(let refusal):
            refuse(refusal)
            return nil
        }
    }

    private mutating func readBody(_ input: inout UnsafeRawBufferPointer, at second: Int32) -> Step? {
        let progress = decode(&input)
        if content.count > limits.bodyBytes {
            refuse(bodyTooLarge)
            return nil
        }
        switch progress {
        case .incomplete:
            unread.keep(&input)
            return .wait
        case .complete:
            phase = .complete
            return nil
        case .refused(let refusal):
            refuse(refusal)
            return nil
        }
    }

    /// Decodes the available part of a body into `content`.
    private mutating func decode(_ input: inout UnsafeRawBufferPointer) -> HTTPBodyProgress {
        if !unread.isEmpty { unread.keep(&input) }
        let pending = unread
        let (consumed, progress) =
            pending.isEmpty
            ? decoder.decode(input, into: &content)
            : pending.withUnsafeBytes { decoder.decode($0, into: &content) }
        unread.consume(consumed, &input)
        return progress
    }

    private mutating func readPiece(_ input: inout UnsafeRawBufferPointer, at second: Int32) -> Step? {
        guard !isPaused else {
            unread.keep(&input)
            return .wait
        }
        let progress = decode(&input)
        switch progress {
        case .incomplete:
            guard !content.isEmpty else {
                unread.keep(&input)
                return .wait
            }
            deadline = second + limits.pieceSeconds
            isPaused = true
            let piece = content
            content = []
            return .piece(piece)
        case .complete:
            phase = .complete
            return nil
        case .refused(let refusal):
            refuse(refusal)
            return nil
        }
    }

    /// Continues reading after a piece of the body was processed.
    package mutating func goOn() { isPaused = false }

    private mutating func skipBody(_ input: inout UnsafeRawBufferPointer, at second: Int32) -> Step? {
        let step = readBody(&input, at: second)
        content.removeAll(keepingCapacity: true)
        if phase == .complete {
            content = []
            beginHead(at: second)
        }
        return step
    }

    private mutating func drop() {
        unread.drop()
        content = []
    }

    // MARK: Answers out

    /// Accepts the body of the request being judged.
    ///
    /// - Parameters:
    ///   - input: what `advance` left. A client that has already sent some of the body gets no `100 Continue` (RFC
    ///     9110, section 10.1.1).
    ///   - inPieces: passes the body on as it arrives, however long it gets; the first piece needs a call of `goOn`,
    ///     too.
    package mutating func admit(_ input: UnsafeRawBufferPointer, inPieces: Bool = false, at second: Int32) {
        guard phase == .judging else { return }
        switch framing {
        case _ where inPieces: break
        case .none, .length(0):
            phase = .complete
            return
        case .length(let length):
            guard length <= limits.bodyBytes else { return refuse(bodyTooLarge) }
            content.reserveCapacity(min(length, unread.count + input.count))
        case .chunked: break
        }
        decoder = HTTPBodyDecoder(framing)
        phase = inPieces ? .pieces : .body
        isPaused = inPieces
        deadline = second + (inPieces ? limits.pieceSeconds : limits.bodySeconds)
        if awaitsContinue, unread.isEmpty, input.isEmpty { queued += "HTTP/1.1 100 Continue\r\n\r\n".utf8 }
    }

    /// Answers the current request. If its body was not admitted, a short one is skipped; a long one, or one that the
    /// client may now never send, ends the connection.
    ///
    /// - Parameter closes: ends the connection after the response.
    package mutating func answer(_ response: HTTPResponse, closes: Bool = false, at second: Int32) {
        guard !hasAnswer else { return }
        if closes || isLast || phase == .pieces { keepsAlive = false }
        if phase == .judging, framing != .none, framing != .length(0) {
            if case .length(let length) = framing, length <= limits.skippedBytes, !awaitsContinue {
                skipsBody = keepsAlive
            } else {
                keepsAlive = false
            }
        }
        response.write(into: &queued, leavingOutBody: isHead, closes: !keepsAlive)
        if !keepsAlive { drop() }
        phase = .sending
        deadline = second + limits.idleSeconds
    }

    private var hasAnswer: Bool {
        switch phase {
        case .head, .judging, .body, .pieces, .complete, .answering: false
        case .sending, .sent, .streaming, .skipping, .lingering, .closed: true
        }
    }

    /// Answers the current request with a body that continues until `endStream`. Until then the caller writes to the
    /// socket itself, beginning with the returned bytes; `output` must not be used.
    ///
    /// - Returns: the head, behind any output that was waiting, and whether the body must be sent in chunks.
    package mutating func stream(_ response: HTTPResponse) -> (head: [UInt8], isChunked: Bool) {
        var head = Array(output)
        queued = []
        taken = 0
        guard !hasAnswer else { return (head, false) }
        if isLast || isHTTP10 { keepsAlive = false }
        response.writeHead(into: &head, isChunked: !isHTTP10, closes: !keepsAlive)
        phase = .streaming
        return (head, !isHTTP10)
    }

    /// Resumes after the socket has taken the whole body; `advance` returns the next step.
    package mutating func endStream(at second: Int32) {
        guard phase == .streaming else { return }
        if isLast { keepsAlive = false }
        phase = .sent
        deadline = second + limits.idleSeconds
    }

    private mutating func refuse(_ refusal: HTTPRefusal) {
        refuse(.error(UInt32(refusal.status), refusal.message))
    }

    /// A body that is only skipped belongs to a request that was already answered.
    private mutating func refuse(_ response: HTTPResponse) {
        guard phase != .skipping else { return }
        drop()
        refusal = response
        phase = .answering
    }

    private var bodyTooLarge: HTTPRefusal {
        HTTPRefusal(status: 413, message: "The body may have \(limits.bodyBytes) bytes at most")
    }

    /// Returns the bytes behind the head being judged, and gives the connection up to the caller.
    package mutating func takeRest(_ input: UnsafeRawBufferPointer) -> [UInt8] {
        phase = .closed
        let rest = unread.all + input
        drop()
        return rest
    }

    /// The bytes for the socket to send.
    package var output: ArraySlice<UInt8> { queued[taken...] }

    package var hasOutput: Bool { taken < queued.count }

    /// Notes that the socket has taken this many bytes of `output`.
    package mutating func sent(_ count: Int, at second: Int32) {
        taken += count
        if phase == .sending { deadline = second + limits.idleSeconds }
        guard taken == queued.count else { return }
        // Worth keeping for short responses: most connections that stay open send many requests.
        if queued.capacity <= Self.keptBytes { queued.removeAll(keepingCapacity: true) } else { queued = [] }
        taken = 0
    }

    // MARK: Bounds

    /// Whether there is room for more. While there is none, only a reset shows that the client is gone.
    package var wantsInput: Bool {
        !(phase == .pieces && isPaused) && unread.count < limits.readAheadBytes
    }

    /// Bytes of an incomplete request, or of one that waits for its turn.
    package var heldBytes: Int { unread.count + content.count }

    /// Gives up an incomplete request, because all connections together store too much. A response in progress is left
    /// alone.
    ///
    /// - Returns: whether a request was given up; `advance` then returns the refusal.
    package mutating func shed() -> Bool {
        guard phase == .head || phase == .body else { return false }
        var response = HTTPResponse.error(
            503, "The hub holds too many unfinished requests (limits.unfinished_bytes); try again in a moment")
        response.headers = [("retry-after", "1")]
        refuse(response)
        return true
    }

    /// Ends whatever takes too long. Call about once a second, and call `advance` if it returns true.
    package mutating func expire(at second: Int32) -> Bool {
        guard second >= deadline else { return false }
        switch phase {
        case .head where hasBegunHead:
            refuse(HTTPRefusal(status: 408, message: "The request's head did not arrive in time"))
        case .body, .pieces:
            refuse(HTTPRefusal(status: 408, message: "The request's body did not arrive in time"))
        case .head, .sending, .skipping, .lingering:
            phase = .closed
        case .judging, .complete, .answering, .sent, .streaming, .closed:
            return false
        }
        return true
    }

    /// True before the first byte of a request.
    package var isIdle: Bool { phase == .head && !hasBegunHead }
}
