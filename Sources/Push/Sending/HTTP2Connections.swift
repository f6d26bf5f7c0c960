import CCurl
import Workers

/// The real connections, by libcurl and nghttp2 through the shim in CCurl. Confined to the client's thread.
final class HTTP2Connections: PushTransport {
    private let set: OpaquePointer
    private let limits: PushLimits
    private let origin: (ServerName) -> String
    /// The set holds a pointer to this gate; nil if all servers are the operator's choice.
    private let gate: AddressGate?

    /// - Parameters:
    ///   - set: owned by the caller, and outlives this object.
    ///   - rules: the addresses that may be connected to, if clients name the URLs; nil allows all.
    ///   - origin: the URL of a server.
    init(
        _ set: OpaquePointer, _ limits: PushLimits, guardedBy rules: EndpointRules?,
        origin: @escaping (ServerName) -> String
    ) {
        self.set = set
        self.limits = limits
        self.origin = origin
        gate = rules.map { AddressGate($0) }
        gate?.guardConnections(of: set)
    }

    deinit { if gate != nil { roost_http2_set_guard(set, nil, nil) } }

    func open(to server: ServerName) -> Connection? {
        let connection = roost_http2_open(
            set, origin(server), limits.caFile, Int(limits.connectTimeout.milliseconds))
        return connection == 0 ? nil : connection
    }

    func post(_ request: PushRequest, _ ticket: SendQueue.Ticket, on connection: Connection) -> Bool {
        request.headers.bytes.withUnsafeBytes { headers in
            roost_http2_post(
                set, connection, ticket, headers.baseAddress?.assumingMemoryBound(to: CChar.self), headers.count,
                request.body, request.body.count, request.indexesAll ? 1 : 0) == 0
        }
    }

    func cancel(_ ticket: SendQueue.Ticket, on connection: Connection) -> Bool? {
        let hadLeft = roost_http2_cancel(set, connection, ticket)
        return hadLeft < 0 ? nil : hadLeft == 1
    }

    func ping(_ connection: Connection) { roost_http2_ping(set, connection) }

    func close(_ connection: Connection) { roost_http2_close(set, connection) }

    func limit(of connection: Connection) -> Int { Int(roost_http2_limit(set, connection)) }

    /// Waits until something happens on a connection, or another thread wakes the set.
    ///
    /// - Parameter timeout: milliseconds.
    func wait(_ timeout: Int64) { roost_http2_wait(set, Int32(clamping: max(0, timeout))) }

    func nextEvent() -> (connection: Connection, event: TransportEvent)? {
        guard let note = roost_http2_next(set)?.pointee else { return nil }
        return (note.connection, TransportEvent(note))
    }
}

extension TransportEvent {
    fileprivate init(_ note: roost_http2_note) {
        let body = Array(UnsafeBufferPointer(start: note.body, count: note.length))
        switch note.kind {
        case ROOST_HTTP2_OPENED: self = .opened
        case ROOST_HTTP2_GOAWAY:
            // APNs gives the reason in the form of an answer.
            let reason = APNsAnswer.read(Answer(status: 0, body: body)).reason
            self = .goAway(why: reason.isEmpty ? "HTTP/2 error code \(note.status)" : reason)
        case ROOST_HTTP2_PONG: self = .pong
        case ROOST_HTTP2_ANSWERED:
            let answer = Answer(
                status: Int(note.status), date: HTTPDate.milliseconds(String(cString: note.date)),
                retryAfter: RetryAfter.milliseconds(String(cString: note.retry_after)), body: body)
            self = .answered(note.request, answer)
        case ROOST_HTTP2_UNSEEN: self = .unseen(note.request)
        case ROOST_HTTP2_LOST: self = .lost(note.request)
        default: self = .closed(why: String(cString: note.text))
        }
    }
}
