import CWebSockets
import Hub

/// HTTP on the port of the WebSockets.
extension EventLoop {
    /// The headers are in. Zero goes on, nonzero closes the connection.
    func httpBegan(_ wsi: OpaquePointer) -> Int32 {
        let headers = HeaderReader(wsi: wsi)
        guard let (method, path) = headers.request else { return 1 }
        let query = headers.query
        let request = HTTPRequest(
            method: method, path: path, token: TokenSource(headers: headers).ofCall(query: query),
            contentType: headers.header(WSI_TOKEN_HTTP_CONTENT_TYPE), host: headers.header(WSI_TOKEN_HOST),
            origin: headers.header(WSI_TOKEN_ORIGIN), query: query)
        nextExchange += 1
        let origin = rules.origins.isEmpty ? nil : headers.header(WSI_TOKEN_ORIGIN)
        exchanges[wsi] = HTTPExchange(id: nextExchange, request: request, isOps: isOps(wsi), origin: origin)
        let announced = headers.header(WSI_TOKEN_HTTP_CONTENT_LENGTH)
        // A request with a body behind another one in the same packet: lws 4.1.6 takes the request's own head for its
        // body, and then turns in a circle for good. To hang up is allowed (RFC 9112, section 9.3.2: a client repeats
        // what it sent ahead), to answer is not possible.
        if let announced, announced != "0", keptAlive.contains(wsi), roost_has_buffered_input(wsi) != 0 { return 1 }
        guard method == .post || method == .other else { return httpCompleted(wsi) }
        guard let length = announced.flatMap({ Int($0) }) else {
            return respond(wsi, Door.error(411, "Content-Length is missing"), thenClose: true)
        }
        guard length <= configuration.maximumBodyBytes else {
            let text = "The body may have \(configuration.maximumBodyBytes) bytes at most"
            return respond(wsi, Door.error(413, text), thenClose: true)
        }
        return length == 0 ? httpCompleted(wsi) : 0
    }

    func httpBody(_ wsi: OpaquePointer, _ bytes: UnsafeRawBufferPointer) -> Int32 {
        guard let count = exchanges[wsi]?.request.body.count else { return 1 }
        guard count + bytes.count <= configuration.maximumBodyBytes else { return 1 }
        exchanges[wsi]?.request.body.append(contentsOf: bytes)
        return 0
    }

    func httpCompleted(_ wsi: OpaquePointer) -> Int32 {
        guard let exchange = exchanges[wsi] else { return 1 }
        let request = exchange.request
        let reply = HTTPReply(exchange: exchange.id, inbox: inbox)
        if exchange.isOps {
            return answer(wsi, opsHandler?.respond(to: request, later: reply))
        }
        if request.method == .options {
            return respond(wsi, Self.preflight)
        }
        switch broadcastAPI.handle(request, at: now()) {
        case .refused(let response): return respond(wsi, response.readableAnywhere)
        case .tooLarge(let response):
            hub.countRefusal(.over(.payloadBytes, rules.limits.payloadBytes))
            return respond(wsi, response.readableAnywhere)
        case .accepted(let publication): return publish(publication, wsi, exchange: exchange.id)
        case nil: break
        }
        return answer(wsi, handler?.respond(to: request, later: reply))
    }

    private func answer(_ wsi: OpaquePointer, _ answer: HTTPAnswer?) -> Int32 {
        switch answer {
        case .now(let response): return respond(wsi, response)
        case .later: return 0
        case nil: return respond(wsi, Door.error(404, "Nothing is served here"))
        }
    }

    /// A handler's late reply. Its connection may be gone by now.
    func httpReplied(_ exchange: Int, _ response: HTTPResponse) {
        guard let wsi = exchanges.first(where: { $0.value.id == exchange })?.key else { return }
        exchanges[wsi]?.response = response
        lws_callback_on_writable(wsi)
    }

    func httpWritable(_ wsi: OpaquePointer) -> Int32 {
        guard let response = exchanges[wsi]?.response else { return 0 }
        return respond(wsi, response)
    }

    func httpClosed(_ wsi: OpaquePointer) {
        exchanges[wsi] = nil
        keptAlive.remove(wsi)
    }

    func respond(_ wsi: OpaquePointer, _ response: HTTPResponse, thenClose: Bool = false) -> Int32 {
        let exchange = exchanges.removeValue(forKey: wsi)
        let isHead = exchange?.request.method == .head
        let response = rules.origins.narrow(response, to: exchange?.origin)
        if Self.write(response, to: wsi, bodyLeftOut: isHead) != 0 || thenClose { return -1 }
        // Noted before, because what lws has buffered of the next request is handled inside this call.
        keptAlive.insert(wsi)
        return lws_http_transaction_completed(wsi) != 0 ? -1 : 0
    }

    static func write(_ response: HTTPResponse, to wsi: OpaquePointer, bodyLeftOut: Bool = false) -> Int32 {
        var headers = response.headers.contains { $0.name == "cache-control" } ? "" : "cache-control: no-store\n"
        for (name, value) in response.headers { headers += "\(name): \(value)\n" }
        return response.body.withUnsafeBufferPointer {
            roost_respond(
                wsi, response.status, response.contentType, headers, $0.baseAddress, bodyLeftOut ? 0 : $0.count)
        }
    }

    private static let preflight = HTTPResponse(
        status: 204,
        headers: [
            ("access-control-allow-origin", "*"),
            ("access-control-allow-methods", "GET, POST, DELETE, OPTIONS"),
            ("access-control-allow-headers", "authorization, apikey, content-type, x-client-info, x-api-key"),
            ("access-control-max-age", "86400"),
        ])
}
