import Dispatch
import Logging
import Streams
import Synchronization
import Wire

/// The demo's assistant: answers messages that begin with `@assistant`, each with a stream that grows token by token.
///
/// It stands in for a backend that asks a model, and shows how such a backend should write. The stream is named after the question, so
/// that a question sent twice is answered once. Appends are numbered, so that one whose answer got lost may be sent again. The last one
/// closes the stream, and the row is committed with it (`streams.on_close`). A user who stops the reply ends it: the next append is
/// refused, and the text shown until then is kept as a row.
///
/// **Thread**: from any. **Overload**: the number of concurrent replies is limited; further questions are answered with a request to
/// ask again.
final class Assistant: Sendable {
    private let streams: any StreamService
    private let logger: Logger
    private let running = Mutex(0)
    private let queue = DispatchQueue(label: "roost.demo.assistant")
    // Unsafe in name only: used on `queue`, which is serial.
    nonisolated(unsafe) private let database: DemoDatabase

    /// The interval between two tokens: about thirty a second.
    private static let pace = DispatchTimeInterval.milliseconds(33)
    private static let mostAtOnce = 16
    /// The number of times that an unanswerable append is sent again, after a second each.
    private static let mostRepeats = 20
    private static let role = "service_role"
    private static let claims = "{\"role\":\"service_role\"}"

    init(streams: any StreamService, conninfo: String, logger: Logger) {
        self.streams = streams
        self.logger = logger
        database = DemoDatabase(conninfo: conninfo, logger: logger)
    }

    /// Answers a message if it is addressed to the assistant and has a local id.
    ///
    /// - Parameter message: the row, as returned by the demo's API.
    func hear(message json: JSON) {
        guard let question = json["body"]?.string.flatMap(AssistantScript.question), let id = json["local_id"]?.string,
            let conversation = json["conversation_id"]?.string, let name = StreamName("reply/\(conversation)/\(id)")
        else { return }
        let isFree = running.withLock { running in
            guard running < Self.mostAtOnce else { return false }
            running += 1
            return true
        }
        let tokens =
            isFree
            ? AssistantScript.tokens(answering: question) : [AssistantScript.refusal(busyWith: Self.mostAtOnce)]
        let reply = ReplyInProgress(stream: name, tokens: tokens, counts: isFree)
        streams.submitRequest(
            .create(StreamConfiguration(contentType: "text/plain"), body: [], closes: false, isNext: false), on: name
        ) {
            [self] answer in
            // An existing stream is being answered, or has been.
            guard case .created = answer else {
                if case .refused(let refusal) = answer { logger.warning("The assistant cannot answer: \(refusal)") }
                return end(reply)
            }
            append(reply)
        }
    }

    /// Appends the next token, and continues when the append is answered.
    private func append(_ reply: ReplyInProgress) {
        var append = StreamAppend(body: Array(reply.tokens[reply.sequence].utf8))
        append.producer = ProducerStamp(id: "assistant", epoch: 0, sequence: reply.sequence)
        append.closes = reply.isLast
        append.bearer = StreamBearer(role: Name(Self.role), claims: Array(Self.claims.utf8))
        streams.submitRequest(.append(append), on: reply.stream) { [self] answer in
            switch answer {
            case .appended:
                guard let next = reply.next else { return end(reply) }
                later(Self.pace) { self.append(next) }
            case .refused(.ended(let snapshot)):
                if snapshot.status.ending?.reason == .cancelled { keep(reply, upTo: snapshot.end) }
                end(reply)
            case .refused(.unavailable) where reply.repeats < Self.mostRepeats,
                .refused(.noRoom) where reply.repeats < Self.mostRepeats:
                later(.seconds(1)) { self.append(reply.again) }
            case .refused(.notFound), .refused(.gone): end(reply)
            case .created, .existed, .done, .refused: giveUp(reply, answer)
            }
        }
    }

    /// Ends a reply that cannot be continued, so that nobody waits for more of it.
    private func giveUp(_ reply: ReplyInProgress, _ answer: StreamAnswer) {
        if case .refused(let refusal) = answer { logger.warning("The assistant gives up a reply: \(refusal)") }
        streams.submitRequest(.cancel(nil, by: nil), on: reply.stream) { [self] answer in
            if case .done(let snapshot?) = answer { keep(reply, upTo: snapshot.end) }
            end(reply)
        }
    }

    /// Keeps the shown part of a reply that was stopped.
    private func keep(_ reply: ReplyInProgress, upTo end: Int) {
        let text = String(decoding: reply.tokens.joined().utf8.prefix(end), as: UTF8.self)
        queue.async { [self] in
            do {
                _ = try database.perform(
                    "select to_json(m) from demo.keep_reply($1, $2) m", [reply.stream.text, text], role: Self.role,
                    claims: Self.claims)
            } catch {
                logger.warning("A reply that was stopped is not kept: \(error)")
            }
        }
    }

    private func end(_ reply: ReplyInProgress) {
        if reply.counts { running.withLock { $0 -= 1 } }
    }

    private func later(_ interval: DispatchTimeInterval, _ body: @escaping @Sendable () -> Void) {
        queue.asyncAfter(deadline: .now() + interval, execute: body)
    }
}

/// A reply, and its progress.
private struct ReplyInProgress {
    let stream: StreamName
    let tokens: [String]
    /// Whether it counts towards the limit of concurrent replies.
    let counts: Bool
    /// The index of the token being appended, from zero.
    private(set) var sequence = 0
    /// The number of times that this append was sent again.
    private(set) var repeats = 0

    init(stream: StreamName, tokens: [String], counts: Bool) {
        self.stream = stream
        self.tokens = tokens
        self.counts = counts
    }

    var isLast: Bool { sequence == tokens.count - 1 }

    var next: ReplyInProgress? {
        guard !isLast else { return nil }
        var next = self
        next.sequence += 1
        next.repeats = 0
        return next
    }

    var again: ReplyInProgress {
        var again = self
        again.repeats += 1
        return again
    }
}
