/// What one connection says and hears of HTTP/1.1 (RFC 9112), without the socket: bytes go in, and `advance` says what is
/// to be done next. Bytes that are to be sent gather in `output`.
///
/// One request at a time: what a client sends behind it waits until its answer was taken by the socket. So neither the
/// order of answers nor the memory that they take is the client's to choose.
///
/// A pure value on a clock of its user's: seconds that grow. It cannot be copied: whoever holds it in an object would copy all
/// of it to ask for one property.
package struct HTTPConnection: ~Copyable, Sendable {
    private enum Phase {
        case head, judging, body, pieces, complete, answering, sending, sent, streaming, skipping, lingering, closed
    }

    private let limits: Limits
    private var phase = Phase.head
    private var parser: HTTPHeadParser
    private var decoder = HTTPBodyDecoder(.none)
    /// What came and was not looked at, or belongs to a head that is not complete.
    private var unread = UnreadBytes()
    private var content: [UInt8] = []
    private var framing = HTTPBodyFraming.none
    private var isHead = false
    /// The request in hand is HTTP/1.0, whose answers have no chunks.
    package private(set) var isHTTP10 = false
    private var keepsAlive = true
    private var awaitsContinue = false
    /// A piece of the body is being worked at.
    private var isPaused = false
    /// The body of the request that is being answered is still to come, and nobody wants it.
    private var skipsBody = false
    /// Of the request that cannot be taken, until it is asked for.
    private var refusal: HTTPResponse?
    private var hasBegunHead = false
    private var lingered = 0
    private var deadline: Int32
    private var queued: [UInt8] = []
    private static let keptBytes = 512
    private var taken = 0

    /// Set when the hub is about to end: the next answer is the last.
    package var isLast = false

    /// - Parameter second: now.
    package init(limits: Limits, at second: Int32) {
        self.limits = limits
        parser = HTTPHeadParser(limits: limits.head)
        deadline = second + limits.headSeconds
    }

    // MARK: Bytes in

    /// To be called with bytes that came, and again, with what it left of them, until it says `wait`.
    ///
    /// - Parameters:
    ///   - input: what it has taken of it is cut off.
    ///   - second: now.
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
                // Behind the last answer comes nothing that would be looked at.
                if keepsAlive { unread.keep(&input) } else { unread.discard(&input) }
                guard queued.isEmpty else { return .wait }
                phase = .sent
            case .streaming:
                // Read all the same: that nothing more comes is how the end of the client is noticed at once.
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

    /// Takes what there is of a body into `content`.
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

    /// What came of the body was worked at.
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

    /// Lets the body of the request in that is to be judged.
    ///
    /// - Parameters:
    ///   - input: as `advance` left it. A client that sent some of the body already is not told to go on (RFC 9110,
    ///     section 10.1.1).
    ///   - inPieces: the body is taken as it comes, however long it gets; `goOn` is to be called for the first piece, too.
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

    /// Answers the request in hand. Where its body was not let in, a short one is passed over; a long one, and one that a
    /// client may hold back for good now, ends the connection.
    ///
    /// - Parameter closes: the connection is to end behind the answer.
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

    /// Answers the request in hand with a body that goes on until `endStream`. Whoever calls this writes to the socket from here
    /// on, what is returned first; nothing is to be written by `output`.
    ///
    /// - Returns: the head, behind what else was waiting, and whether pieces of the body are chunks.
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

    /// The socket has taken all of the body. `advance` says how it goes on.
    package mutating func endStream(at second: Int32) {
        guard phase == .streaming else { return }
        if isLast { keepsAlive = false }
        phase = .sent
        deadline = second + limits.idleSeconds
    }

    private mutating func refuse(_ refusal: HTTPRefusal) {
        refuse(.error(UInt32(refusal.status), refusal.message))
    }

    /// A body that is only passed over was answered already.
    private mutating func refuse(_ response: HTTPResponse) {
        guard phase != .skipping else { return }
        drop()
        refusal = response
        phase = .answering
    }

    private var bodyTooLarge: HTTPRefusal {
        HTTPRefusal(status: 413, message: "The body may have \(limits.bodyBytes) bytes at most")
    }

    /// What the client sent behind the head that is to be judged; the connection is another's from here on.
    package mutating func takeRest(_ input: UnsafeRawBufferPointer) -> [UInt8] {
        phase = .closed
        let rest = unread.all + input
        drop()
        return rest
    }

    /// What the socket is to take.
    package var output: ArraySlice<UInt8> { queued[taken...] }

    package var hasOutput: Bool { taken < queued.count }

    /// The socket has taken so many bytes of `output`.
    package mutating func sent(_ count: Int, at second: Int32) {
        taken += count
        if phase == .sending { deadline = second + limits.idleSeconds }
        guard taken == queued.count else { return }
        // Room for a short answer is worth keeping: most connections that are kept ask for many.
        if queued.capacity <= Self.keptBytes { queued.removeAll(keepingCapacity: true) } else { queued = [] }
        taken = 0
    }

    // MARK: Bounds

    /// Whether there is room for more. While there is not, only a reset shows that the client is gone.
    package var wantsInput: Bool {
        !(phase == .pieces && isPaused) && unread.count < limits.readAheadBytes
    }

    /// What is held of a request that is not complete, or waits for its turn.
    package var heldBytes: Int { unread.count + content.count }

    /// Too much is held of all connections together. An answer that is being made is not disturbed.
    ///
    /// - Returns: whether something is given up; then `advance` says what.
    package mutating func shed() -> Bool {
        guard phase == .head || phase == .body else { return false }
        var response = HTTPResponse.error(
            503, "The hub holds too many unfinished requests (limits.unfinished_bytes); try again in a moment")
        response.headers = [("retry-after", "1")]
        refuse(response)
        return true
    }

    /// Ends what takes too long. To be called about once a second, and then `advance` where it returns true.
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

    /// Nothing of a request has come yet.
    package var isIdle: Bool { phase == .head && !hasBegunHead }
}
