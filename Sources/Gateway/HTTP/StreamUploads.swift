import DurableStreams
import HTTP
import Hub
import Streams
import Wire

/// Requests whose bodies are appended to streams as they arrive: a backend writes a reply with one request, for as long
/// as it takes.
///
/// Each request has one append under way at a time, and its body is not read meanwhile: bytes that arrive faster than
/// they can be stored wait in the sender's socket. The connection stands for the producer: if it ends before the body
/// does, the stream has stalled. If the stream ends in another way, the answer says so at once.
final class StreamUploads {
    private struct Upload {
        let sender: StreamsAPI.Sender
        var append: StreamAppend
        let hold: HeldRequests.Hold
        /// The beginning of a character whose remaining bytes are still to come.
        var tail: [UInt8] = []
        var isLast = false
        /// True once the policies have allowed the upload.
        var isLetIn = false
    }

    /// Lives as long as the process.
    private unowned(unsafe) let loop: EventLoop
    /// By exchange.
    private var uploads: [Int: Upload] = [:]

    init(loop: EventLoop) {
        self.loop = loop
    }

    private var service: (any StreamService)? { loop.services.streams }

    private func hold(_ exchange: Int) -> StreamHold {
        // Members of channels use positive serials.
        StreamHold(loop: loop.index, serial: -exchange)
    }

    /// The users that are appending to a stream, for the operator; nil for a token that names none.
    func users(of stream: StreamName) -> [Name?] {
        uploads.values.filter { $0.isLetIn && $0.sender.call.name == stream }.map(\.sender.claims.subject)
    }

    // MARK: Rights

    func begin(_ sender: StreamsAPI.Sender, exchange: Int, _ rights: StreamRights) {
        guard case .append(var append, _) = sender.call.action else { return }
        append.bearer = StreamBearer(sender.claims)
        guard let hold = loop.limits.requests.enter(sender.claims) else {
            loop.counters.overShare += 1
            return refuse(exchange, HeldRequests.refusal)
        }
        uploads[exchange] = Upload(sender: sender, append: append, hold: hold)
        guard !sender.hasTicket else { return letIn(exchange) }
        switch rights.know(sender.claims, sender.call.name, sender.call.right, at: loop.second) {
        case true?: letIn(exchange)
        case false?: refuse(exchange, forbidden())
        case nil:
            let question = AuthorizationQuestion(
                claims: sender.claims, topic: sender.call.name.topic, right: sender.call.right.asked)
            loop.ask(question) { .streamRight(exchange, $0) }
        }
    }

    func decide(_ exchange: Int, _ outcome: AuthorizationOutcome, _ rights: inout StreamRights) {
        guard let sender = uploads[exchange]?.sender else { return }
        guard let extensions = outcome.extensions else {
            return refuse(exchange, .refusal(503, .databaseUnavailable))
        }
        rights.note(
            !extensions.isEmpty, sender.claims, sender.call.name, sender.call.right, at: loop.second)
        if extensions.isEmpty { refuse(exchange, forbidden()) } else { letIn(exchange) }
    }

    private func forbidden() -> HTTPResponse {
        loop.counters.streamsForbidden += 1
        return StreamsAPI.forbidden
    }

    private func letIn(_ exchange: Int) {
        guard let sender = uploads[exchange]?.sender else { return }
        uploads[exchange]?.isLetIn = true
        service?.watchStream(sender.call.name, by: loop.index)
        ask(.hold(hold(exchange)), exchange)
    }

    /// Posted, because the caller may be in the middle of reading the connection.
    private func refuse(_ exchange: Int, _ response: HTTPResponse) {
        forget(exchange, isFault: false)
        loop.inbox.post(.respond(exchange, response.readableAnywhere))
    }

    // MARK: Pieces

    func take(_ piece: [UInt8], exchange: Int) {
        guard var upload = uploads[exchange] else { return }
        var bytes = upload.tail + piece
        upload.tail = []
        if upload.append.contentType.map({ StreamContent(contentType: $0) }) == .text {
            upload.tail = Array(bytes.suffix(UTF8Scanner.unfinishedCount(in: bytes)))
            bytes.removeLast(upload.tail.count)
        }
        uploads[exchange] = upload
        guard !bytes.isEmpty else { return goOn(exchange) }
        var append = upload.append
        append.body = bytes
        append.closes = false
        ask(.append(append), exchange)
    }

    func end(_ piece: [UInt8], exchange: Int) {
        guard var upload = uploads[exchange] else { return }
        upload.isLast = true
        var append = upload.append
        append.body = upload.tail + piece
        uploads[exchange] = upload
        let hasWord = !append.body.isEmpty || append.closes
        ask(hasWord ? .append(append) : .touch, exchange)
    }

    private func goOn(_ exchange: Int) {
        // Posted, because the connection may be in the middle of being read.
        loop.inbox.post(.appended(exchange, .done(nil)))
    }

    private func ask(_ request: StreamRequest, _ exchange: Int) {
        guard let name = uploads[exchange]?.sender.call.name else { return }
        service?.submitRequest(request, on: name) { [inbox = loop.inbox] in inbox.post(.appended(exchange, $0)) }
    }

    /// Handles the result of a request to the stream.
    func appended(_ exchange: Int, _ answer: StreamAnswer) {
        guard let upload = uploads[exchange] else { return }
        if case .refused = answer { return finish(exchange, upload, answer) }
        // Pins the upload to the generation that it began with, even if the name is reused.
        if case .done(let snapshot?) = answer, upload.append.generation == nil {
            uploads[exchange]?.append.generation = snapshot.id
        }
        if upload.isLast { finish(exchange, upload, answer) } else { loop.http.goOn(exchange) }
    }

    private func finish(_ exchange: Int, _ upload: Upload, _ answer: StreamAnswer) {
        forget(exchange, isFault: false)
        let response = StreamResponse.makeResponse(answer, to: upload.sender.call, url: upload.sender.url)
        loop.router.replied(exchange, .answered(response.readableAnywhere))
    }

    /// Answers producers at once if their stream has ended in another way, whatever they are about to send.
    func changed(_ stream: StreamBuffer) {
        guard !uploads.isEmpty else { return }
        let snapshot = stream.snapshot
        guard stream.isGone || snapshot.status.ending != nil else { return }
        for (exchange, upload) in uploads where upload.sender.call.name == stream.name && upload.isLetIn {
            // The upload's own end is answered by its append.
            if upload.isLast { continue }
            finish(exchange, upload, .refused(stream.isGone ? .notFound : .ended(snapshot)))
        }
    }

    /// The connection ended before its body did.
    func abandoned(_ exchange: Int) { forget(exchange, isFault: true) }

    private func forget(_ exchange: Int, isFault: Bool) {
        guard let upload = uploads.removeValue(forKey: exchange) else { return }
        loop.limits.requests.leave(upload.hold)
        guard upload.isLetIn else { return }
        let name = upload.sender.call.name
        service?.unwatchStream(name, by: loop.index)
        service?.submitRequest(.release(hold(exchange), isFault: isFault), on: name) { _ in }
    }
}
