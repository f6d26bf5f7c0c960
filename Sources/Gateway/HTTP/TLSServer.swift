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
final class TLSServer {
    /// Lives as long as the process. Counting who holds it costs some 0.2 µs of a short request.
    private unowned(unsafe) let loop: EventLoop
    private var exchanges: [OpaquePointer: TLSExchange] = [:]
    /// By lws' connection, until it is a WebSocket or gone, with the second of the loop.
    private var arrivals: [OpaquePointer: (arrival: Arrival, since: Int32)] = [:]
    /// Of the connection that lws is about to take.
    private var handedOver: Arrival?

    init(loop: EventLoop) {
        self.loop = loop
    }

    // MARK: Connections

    /// Takes a connection over.
    func accept(_ fd: Int32, _ arrival: Arrival) {
        handedOver = arrival
        loop.lws.adoptEncrypted(fd)
        if var arrival = handedOver.take() { loop.admission.depart(&arrival) }
    }

    /// lws has made a connection of the one that it is about to take.
    func adopted(_ wsi: OpaquePointer) {
        if let arrival = handedOver.take() { arrivals[wsi] = (arrival, loop.second) }
    }

    func requestBegins(_ head: some RequestHead, by wsi: OpaquePointer) -> Admission.Denial? {
        guard var arrival = arrivals[wsi]?.arrival, arrival.isProxied || arrival.isOver else { return nil }
        let denial = loop.admission.requestBegins(head, by: &arrival)
        arrivals[wsi]?.arrival = arrival
        if let denial { loop.note(denial) }
        return denial
    }

    /// What is let in is a WebSocket from here on.
    func judgeUpgrade(_ head: some RequestHead, by fd: Int32, of wsi: OpaquePointer) -> EventLoop.UpgradeVerdict {
        // One that is not known is nobody's: it is counted as it is let in.
        var arrival: Arrival? = arrivals[wsi]?.arrival ?? Arrival(address: nil, isProxied: false)
        let verdict = loop.judgeUpgrade(head, by: fd, of: &arrival)
        if case .admitted = verdict { arrivals[wsi] = nil }
        return verdict
    }

    /// lws forgets a connection.
    func destroyed(_ wsi: OpaquePointer) {
        guard !arrivals.isEmpty, var arrival = arrivals.removeValue(forKey: wsi)?.arrival else { return }
        loop.admission.depart(&arrival)
    }

    var requestCount: Int { arrivals.count }

    /// The same as `HTTPServer.makeRoom`. A connection that has sent no head for a while is idle.
    func makeRoom(for newcomer: PeerAddress?) -> Bool {
        let candidates = Array(arrivals)
        let chosen = Displacement.choose(
            among: candidates.enumerated().map { place, entry in
                Displacement.Candidate(
                    place: place, source: entry.value.arrival.source, isIdle: isIdle(entry.key, entry.value.since),
                    since: entry.value.since)
            }, for: newcomer)
        for place in chosen { end(candidates[place].key) }
        loop.counters.displaced += chosen.count
        return !chosen.isEmpty
    }

    /// The same as `HTTPServer.endIdle`.
    func endIdle(of address: PeerAddress) -> Bool {
        let idle = arrivals.filter { $0.value.arrival.counted == address && isIdle($0.key, $0.value.since) }
        guard let eldest = idle.min(by: { $0.value.since < $1.value.since })?.key else { return false }
        end(eldest)
        loop.counters.displaced += 1
        return true
    }

    private func isIdle(_ wsi: OpaquePointer, _ since: Int32) -> Bool {
        exchanges[wsi] == nil && loop.second - since >= Displacement.grace
    }

    /// It is in no count from here on, though lws ends it in its next turn.
    private func end(_ wsi: OpaquePointer) {
        destroyed(wsi)
        lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC)
    }

    // MARK: Requests

    /// The head is in. Zero lets the body come, nonzero closes the connection.
    func began(_ wsi: OpaquePointer) -> Int32 {
        let head = LWSRequestHead(wsi: wsi)
        if let denial = requestBegins(head, by: wsi) {
            return writeLast(denial.response, by: head.field("origin"), isHead: head.method == "HEAD", to: wsi)
        }
        if let refusal = loop.router.refusal(of: head, isOps: false) {
            return writeLast(refusal, by: head.field("origin"), isHead: head.method == "HEAD", to: wsi)
        }
        let call: HTTPCall
        switch loop.router.judge(head, isOps: false) {
        case .answered(let response):
            return writeLast(response, by: head.field("origin"), isHead: head.method == "HEAD", to: wsi)
        case .admitted(let admitted): call = admitted
        }
        exchanges[wsi] = TLSExchange(id: loop.router.nextExchange(), call: call, second: loop.second)
        guard ["POST", "PUT", "PATCH"].contains(head.method) else { return completed(wsi) }
        if !call.needsBody, head.field("transfer-encoding") == nil, head.field("content-length") == nil {
            return completed(wsi)
        }
        // lws reads no chunks.
        guard head.field("transfer-encoding") == nil, let text = head.field("content-length"),
            text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let length = Int(text)
        else {
            return respond(wsi, .error(411, "Content-Length is missing; over TLS the hub takes no chunked bodies"))
        }
        guard length <= loop.configuration.maximumBodyBytes else {
            return respond(wsi, .error(413, "The body may have \(loop.configuration.maximumBodyBytes) bytes at most"))
        }
        return length == 0 ? completed(wsi) : 0
    }

    func body(_ wsi: OpaquePointer, _ bytes: UnsafeRawBufferPointer) -> Int32 {
        guard let exchange = exchanges[wsi], !exchange.isAnswered,
            exchange.call.body.count + bytes.count <= loop.configuration.maximumBodyBytes
        else { return 1 }
        exchanges[wsi]?.call.body.append(contentsOf: bytes)
        let fits = loop.limits.unfinished.change(by: bytes.count)
        guard fits || exchange.call.body.count + bytes.count <= UnfinishedBytes.free else {
            var response = HTTPResponse.error(
                503, "The hub holds too many unfinished requests (limits.unfinished_bytes); try again in a moment")
            response.headers = [("retry-after", "1")]
            loop.counters.unfinishedRefused += 1
            return respond(wsi, response)
        }
        return 0
    }

    func completed(_ wsi: OpaquePointer) -> Int32 {
        guard let exchange = exchanges[wsi] else { return 1 }
        guard !exchange.isAnswered else { return 0 }
        exchanges[wsi]?.isAnswered = true
        _ = loop.limits.unfinished.change(by: -exchange.call.body.count)
        exchanges[wsi]?.call.body = []
        switch loop.router.perform(exchange.call, exchange: exchange.id, by: Int32(lws_get_socket_fd(wsi))) {
        case .answered(let response): return respond(wsi, response)
        case .streams(let answer):
            answer.source.refused(answer.exchange)
            return respond(wsi, RequestRouter.notOverTLS)
        case .later: break
        }
        // While an answer is being made, lws 4.1.6 does not read, and spins where something is to be read.
        lws_rx_flow_control(wsi, 0)
        return 0
    }

    func reply(_ exchange: Int, _ response: HTTPResponse) {
        guard let wsi = exchanges.first(where: { $0.value.id == exchange })?.key else { return }
        exchanges[wsi]?.response = response
        lws_rx_flow_control(wsi, 1)
        lws_callback_on_writable(wsi)
    }

    func writable(_ wsi: OpaquePointer) -> Int32 {
        guard let response = exchanges[wsi]?.response else { return 0 }
        return respond(wsi, response)
    }

    func closed(_ wsi: OpaquePointer) {
        guard let exchange = exchanges.removeValue(forKey: wsi) else { return }
        if exchange.isAnswered { loop.router.abandoned(exchange.id) }
        _ = loop.limits.unfinished.change(by: -exchange.call.body.count)
    }

    /// Once a second: ends bodies that take too long.
    func endSlowBodies() {
        for (wsi, exchange) in exchanges where !exchange.isAnswered {
            guard loop.second - exchange.second >= loop.rules.bodyTimeout else { continue }
            lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC)
        }
    }

    private func respond(_ wsi: OpaquePointer, _ response: HTTPResponse) -> Int32 {
        guard let call = exchanges[wsi]?.call else { return -1 }
        closed(wsi)
        return writeLast(response, by: call.origin, isHead: call.isHead, to: wsi)
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
        loop.router.readable(response, by: origin, isOps: false).write(
            into: &bytes, leavingOutBody: isHead, closes: true)
        _ = roost_write_framed(wsi, bytes, bytes.count)
        return -1
    }
}

/// Reads a request's head from lws, which keeps it only while the request is handled.
///
/// lws' parser takes a header whose name is the beginning of one that it knows for that one, and swallows the next line. So
/// what stands here may be less than the client sent: nothing of it decides where a message ends, and a connection has one
/// request only.
struct LWSRequestHead: RequestHead {
    let wsi: OpaquePointer
    /// Room for the longest token.
    private static let size = 16_384

    func field(_ name: String) -> String? {
        guard let token = Self.token(of: name) else { return text { roost_custom_header(wsi, name + ":", $0, $1) } }
        return text { roost_header(wsi, token, $0, $1) }
    }

    /// lws keeps the headers that it knows apart from the others.
    private static func token(of name: String) -> lws_token_indexes? {
        switch name {
        case "access-control-request-headers": WSI_TOKEN_HTTP_AC_REQUEST_HEADERS
        case "authorization": WSI_TOKEN_HTTP_AUTHORIZATION
        case "connection": WSI_TOKEN_CONNECTION
        case "content-length": WSI_TOKEN_HTTP_CONTENT_LENGTH
        case "content-type": WSI_TOKEN_HTTP_CONTENT_TYPE
        case "host": WSI_TOKEN_HOST
        case "origin": WSI_TOKEN_ORIGIN
        case "sec-websocket-key": WSI_TOKEN_KEY
        case "sec-websocket-version": WSI_TOKEN_VERSION
        case "transfer-encoding": WSI_TOKEN_HTTP_TRANSFER_ENCODING
        case "upgrade": WSI_TOKEN_UPGRADE
        case "x-forwarded-for": WSI_TOKEN_X_FORWARDED_FOR
        default: nil
        }
    }

    func lists(_ token: String, in name: String) -> Bool {
        guard let list = field(name) else { return false }
        return list.split(separator: ",").contains { part in
            part.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }.lowercased() == token
        }
    }

    var isHTTP10: Bool { text { roost_header(wsi, WSI_TOKEN_HTTP, $0, $1) } != "HTTP/1.1" }

    var hasBody: Bool {
        field("transfer-encoding") != nil || field("content-length").map { $0 != "0" } ?? false
    }

    /// `name` without its equals sign; nil where the query has none.
    func query(_ name: String) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Self.size) { buffer in
            guard let base = buffer.baseAddress, roost_query_argument(wsi, name + "=", base, Int32(Self.size)) >= 0
            else {
                return nil
            }
            return String(cString: base)
        }
    }

    var allQuery: [String: String] {
        var all: [String: String] = [:]
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Self.size) { buffer in
            guard let base = buffer.baseAddress else { return }
            var index: Int32 = 0
            while lws_hdr_copy_fragment(wsi, base, Int32(Self.size), WSI_TOKEN_HTTP_URI_ARGS, index) >= 0 {
                let pair = String(cString: base).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                all[String(pair[0])] = pair.count == 2 ? String(pair[1]) : ""
                index += 1
            }
        }
        return all
    }

    var method: String { target?.method ?? "" }
    var path: String { target?.path ?? "" }

    private var target: (method: String, path: String)? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Self.size) { buffer -> (String, String)? in
            guard let base = buffer.baseAddress else { return nil }
            let method: String
            switch Int(roost_method(wsi, base, Int32(Self.size))) {
            case LWSHUMETH_GET: method = "GET"
            case LWSHUMETH_HEAD: method = "HEAD"
            case LWSHUMETH_POST: method = "POST"
            case LWSHUMETH_PUT: method = "PUT"
            case LWSHUMETH_PATCH: method = "PATCH"
            case LWSHUMETH_DELETE: method = "DELETE"
            case LWSHUMETH_OPTIONS: method = "OPTIONS"
            default: return nil
            }
            return (method, String(cString: base))
        }
    }

    private func text(_ read: (UnsafeMutablePointer<CChar>, Int32) -> Int32) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Self.size) { buffer in
            guard let base = buffer.baseAddress, read(base, Int32(Self.size)) > 0 else { return nil }
            return String(cString: base)
        }
    }
}
