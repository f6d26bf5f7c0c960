import CCurl
import Workers

/// The real connections: libcurl's and nghttp2's, through the shim in CCurl. Confined to the client's thread.
final class APNsConnections: PushTransport {
    private let set: OpaquePointer
    private let configuration: APNsConfiguration

    /// - Parameter set: stays with whoever made it, and outlives this object.
    init(_ set: OpaquePointer, _ configuration: APNsConfiguration) {
        self.set = set
        self.configuration = configuration
    }

    func open(to server: ServerName) -> Connection? {
        let connection = roost_apns_open(
            set, configuration.origin(of: server), configuration.caFile,
            Int(configuration.connectTimeout.milliseconds))
        return connection == 0 ? nil : connection
    }

    func post(_ push: Push, _ ticket: SendQueue.Ticket, with token: ProviderToken, on connection: Connection) -> Bool {
        push.headers(authorizedBy: token).withUnsafeBytes { headers in
            roost_apns_post(
                set, connection, ticket, headers.baseAddress?.assumingMemoryBound(to: CChar.self), headers.count,
                push.payload, push.payload.count) == 0
        }
    }

    func cancel(_ ticket: SendQueue.Ticket, on connection: Connection) -> Bool? {
        let hadLeft = roost_apns_cancel(set, connection, ticket)
        return hadLeft < 0 ? nil : hadLeft == 1
    }

    func ping(_ connection: Connection) { roost_apns_ping(set, connection) }

    func close(_ connection: Connection) { roost_apns_close(set, connection) }

    func limit(of connection: Connection) -> Int { Int(roost_apns_limit(set, connection)) }

    /// Waits until something happens on a connection, or somebody wakes the set.
    ///
    /// - Parameter timeout: milliseconds.
    func wait(_ timeout: Int64) { roost_apns_wait(set, Int32(clamping: max(0, timeout))) }

    func nextEvent() -> (connection: Connection, event: TransportEvent)? {
        guard let note = roost_apns_next(set)?.pointee else { return nil }
        return (note.connection, TransportEvent(note))
    }
}

extension TransportEvent {
    fileprivate init(_ note: roost_apns_note) {
        let body = Array(UnsafeBufferPointer(start: note.body, count: note.length))
        switch note.kind {
        case ROOST_APNS_OPENED: self = .opened
        case ROOST_APNS_GOAWAY:
            let reason = Answer(status: 0, body: body, date: "").reason
            self = .goAway(why: reason.isEmpty ? "HTTP/2 error code \(note.status)" : reason)
        case ROOST_APNS_PONG: self = .pong
        case ROOST_APNS_ANSWERED:
            self = .answered(
                note.request, Answer(status: Int(note.status), body: body, date: String(cString: note.date)))
        case ROOST_APNS_UNSEEN: self = .unseen(note.request)
        case ROOST_APNS_LOST: self = .lost(note.request)
        default: self = .closed(why: String(cString: note.text))
        }
    }
}
