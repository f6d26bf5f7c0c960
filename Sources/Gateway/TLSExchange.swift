import CWebSockets
import HTTP
import Hub

/// A request that lws reads, because it ends TLS.
struct TLSExchange {
    let id: Int
    var call: HTTPCall
    /// Of the loop, when its head was read.
    let second: Int32
    /// It is complete and being answered: lws may say so again with every byte that comes behind it.
    var isAnswered = false
    /// That came late, and waits for lws.
    var response: HTTPResponse?
}

/// HTTP where lws ends TLS. Every answer ends its connection: lws 4.1.6 reads heads leniently and gets lost where a request
/// comes behind another one, and nothing of that can matter where there is no second request.
extension EventLoop {
    /// The head is in. Zero lets the body come, nonzero closes the connection.
    func httpBegan(_ wsi: OpaquePointer) -> Int32 {
        let head = HeaderReader(wsi: wsi)
        if let refusal = refusal(of: head, isOps: false) {
            return writeLast(refusal, by: head.field("origin"), isHead: head.method == "HEAD", to: wsi)
        }
        var call = HTTPCall(head, isOps: false)
        if let response = judge(&call) { return writeLast(response, of: call, to: wsi) }
        nextExchange += 1
        exchanges[wsi] = TLSExchange(id: nextExchange, call: call, second: second)
        guard [.post, .put, .patch].contains(call.request.method) else { return httpCompleted(wsi) }
        // lws reads no chunks.
        guard head.field("transfer-encoding") == nil, let text = head.field("content-length"),
            text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let length = Int(text)
        else {
            return respond(wsi, HTTPResponse.error(411, "Content-Length is missing; over TLS the hub takes no chunks"))
        }
        guard length <= configuration.maximumBodyBytes else {
            return respond(wsi, HTTPResponse.error(413, "The body may have \(configuration.maximumBodyBytes) bytes at most"))
        }
        return length == 0 ? httpCompleted(wsi) : 0
    }

    func httpBody(_ wsi: OpaquePointer, _ bytes: UnsafeRawBufferPointer) -> Int32 {
        guard let exchange = exchanges[wsi], !exchange.isAnswered,
            exchange.call.request.body.count + bytes.count <= configuration.maximumBodyBytes
        else { return 1 }
        exchanges[wsi]?.call.request.body.append(contentsOf: bytes)
        let fits = unfinished.change(by: bytes.count)
        guard fits || exchange.call.request.body.count + bytes.count <= UnfinishedBytes.free else {
            var response = HTTPResponse.error(
                503, "The hub holds too many unfinished requests (limits.unfinished_bytes); try again in a moment")
            response.headers = [("retry-after", "1")]
            counters.unfinishedRefused += 1
            return respond(wsi, response)
        }
        return 0
    }

    func httpCompleted(_ wsi: OpaquePointer) -> Int32 {
        guard let exchange = exchanges[wsi] else { return 1 }
        guard !exchange.isAnswered else { return 0 }
        exchanges[wsi]?.isAnswered = true
        _ = unfinished.change(by: -exchange.call.request.body.count)
        exchanges[wsi]?.call.request.body = []
        if let response = perform(exchange.call, exchange: exchange.id) { return respond(wsi, response) }
        // While an answer is being made, lws 4.1.6 does not read, and spins where something is to be read.
        lws_rx_flow_control(wsi, 0)
        return 0
    }

    func replyOverTLS(_ exchange: Int, _ response: HTTPResponse) {
        guard let wsi = exchanges.first(where: { $0.value.id == exchange })?.key else { return }
        exchanges[wsi]?.response = response
        lws_rx_flow_control(wsi, 1)
        lws_callback_on_writable(wsi)
    }

    func httpWritable(_ wsi: OpaquePointer) -> Int32 {
        guard let response = exchanges[wsi]?.response else { return 0 }
        return respond(wsi, response)
    }

    func httpClosed(_ wsi: OpaquePointer) {
        guard let exchange = exchanges.removeValue(forKey: wsi) else { return }
        _ = unfinished.change(by: -exchange.call.request.body.count)
    }

    /// Once a second: ends bodies that take too long.
    func endSlowBodies() {
        for (wsi, exchange) in exchanges where !exchange.isAnswered {
            guard second - exchange.second >= rules.bodyTimeout else { continue }
            lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC)
        }
    }

    private func respond(_ wsi: OpaquePointer, _ response: HTTPResponse) -> Int32 {
        guard let call = exchanges[wsi]?.call else { return -1 }
        httpClosed(wsi)
        return writeLast(response, of: call, to: wsi)
    }

    private func writeLast(_ response: HTTPResponse, of call: HTTPCall, to wsi: OpaquePointer) -> Int32 {
        writeLast(response, by: call.origin, isHead: call.request.method == .head, to: wsi)
    }

    /// Writes a whole answer by itself: what lws writes before it has finished with a head says HTTP/1.0.
    ///
    /// - Parameters:
    ///   - origin: of the page that asks; nil for what is no page.
    ///   - isHead: it answers a HEAD, and has no body.
    /// - Returns: what closes the connection behind it.
    func writeLast(
        _ response: HTTPResponse, by origin: String?, isHead: Bool = false, to wsi: OpaquePointer
    ) -> Int32 {
        var bytes: [UInt8] = []
        readable(response, by: origin, isOps: false).write(into: &bytes, leavingOutBody: isHead, closes: true)
        _ = roost_write_framed(wsi, bytes, bytes.count)
        return -1
    }
}
