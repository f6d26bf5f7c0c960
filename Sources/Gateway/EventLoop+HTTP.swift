import CWebSockets
import HTTP
import Hub

/// What requests are answered, however they came: by `HTTPServer`, or by lws where it ends TLS.
extension EventLoop {
    /// What a request cannot be, whatever is served where. Nil where nothing is wrong with it.
    func refusal(of head: some RequestHead, isOps: Bool) -> HTTPResponse? {
        guard HTTPRequest.Method(rawValue: head.method) != nil, !head.method.isEmpty else {
            guard head.method == "TRACE" || head.method == "CONNECT" else {
                return .error(501, "This method is not known here")
            }
            var response = HTTPResponse.error(405, "This method is not served here")
            response.headers = [("allow", "GET, HEAD, POST, PUT, DELETE, OPTIONS")]
            return response
        }
        guard !isOps, Door.paths.contains(head.path), head.method != "OPTIONS" else { return nil }
        return door.tokenRefusal(of: head, at: now()) ?? WebSocketHandshake.sentence(to: head, at: head.path)
    }

    /// The answer to a request that needs no body to be answered; nil lets the body in.
    func judge(_ call: inout HTTPCall) -> HTTPResponse? {
        let verdict: HTTPVerdict?
        if call.isOps {
            verdict = opsHandler?.judge(call.request)
        } else if call.request.method == .options {
            return .preflight
        } else {
            switch broadcastAPI.judge(call.request, at: now()) {
            case .admitted(let sender):
                call.sender = sender
                return nil
            case .refused(let response): return response.readableAnywhere
            case nil: verdict = handler?.judge(call.request)
            }
        }
        switch verdict {
        case .admitted: return nil
        case .answered(let response): return response
        case .notServed, nil: return Self.nothingHere
        }
    }

    /// Answers a request that was let in, with its body. Nil: `httpReplied` brings the answer.
    func perform(_ call: HTTPCall, exchange: Int) -> HTTPResponse? {
        if let sender = call.sender {
            switch broadcastAPI.handle(call.request, of: sender) {
            case .refused(let response): return response.readableAnywhere
            case .tooLarge(let response):
                hub.countRefusal(.over(.payloadBytes, rules.limits.payloadBytes))
                return response.readableAnywhere
            case .accepted(let publication): return publish(publication, exchange: exchange)
            }
        }
        let reply = HTTPReply { [inbox] in inbox.post(.respond(exchange, $0)) }
        switch (call.isOps ? opsHandler : handler)?.respond(to: call.request, later: reply) {
        case .now(let response): return response
        case .later: return nil
        case nil: return Self.nothingHere
        }
    }

    /// A late answer. Its connection may be gone by now.
    func httpReplied(_ exchange: Int, _ response: HTTPResponse) {
        if !http.reply(exchange, response) { replyOverTLS(exchange, response) }
    }

    /// An answer as the page gets it that asks; see `AllowedOrigins`. On the operator's port no page is served but its own.
    ///
    /// - Parameter origin: of the page; nil for what is no page, and where nobody knows.
    func readable(_ response: HTTPResponse, by origin: String?, isOps: Bool) -> HTTPResponse {
        isOps ? response : rules.origins.readable(response, by: origin)
    }

    private static let nothingHere = HTTPResponse.error(404, "Nothing is served here")
}
