import CWebSockets
package import HTTP
package import Wire

/// Serves the WebSockets of the operator's port. Called on a loop's thread, so it must not block.
package protocol OpsSocketHandler: Sendable {
    /// Nil lets the upgrade proceed.
    func refusal(of request: HTTPRequest) -> HTTPResponse?
    func opened(_ socket: OpsSocket, by request: HTTPRequest)
    /// Takes a whole text message.
    func received(_ message: [UInt8], from socket: OpsSocket.ID)
    func closed(_ socket: OpsSocket.ID)
    /// Called once a second.
    func tick()
}

/// Access to one WebSocket of the operator's port, from any thread.
package struct OpsSocket: Sendable {
    package typealias ID = Int32

    package let id: ID
    /// The peer's address.
    package let address: String
    let inbox: LoopInbox

    package func send(_ frame: Frame) {
        inbox.post(.sendToOperator(id, frame))
    }
}

/// The WebSockets of the operator's port. They are few, so they are handled entirely by lws, apart from the clients'
/// sockets. Confined to the loop that listens on that port.
final class OpsSockets {
    private struct Connection {
        let wsi: OpaquePointer
        /// Frames that the socket has not taken.
        var pending: [[UInt8]] = []
        var pendingBytes = 0
        /// The pieces of an incomplete message.
        var partial: [UInt8] = []
        /// Seconds on the loop's clock.
        var lastHeard: Int32
    }

    private unowned let loop: EventLoop
    private let handler: (any OpsSocketHandler)?
    private var connections: [OpsSocket.ID: Connection] = [:]
    private var last: OpsSocket.ID = 0
    private lazy var timer = LoopTimer(loop.libuv) { [unowned self] in tick() }

    private static let most = 64
    private static let maximumMessageBytes = 65_536
    /// The most bytes that may be pending for a page that does not read.
    private static let maximumPendingBytes = 8_388_608
    /// Seconds. A Phoenix client sends a heartbeat at least every 30.
    private static let idleTimeout: Int32 = 75

    init(loop: EventLoop) {
        self.loop = loop
        handler = loop.services.opsSocketHandler
    }

    /// Starts the handler's once-a-second ticks, half a second after the loops have published their figures, so that no
    /// loop is about to publish. Called only on the loop with the operator's port.
    func begin() { timer.start(after: 1500, every: 1000) }

    private func tick() {
        loop.counters.turnBegins()
        for connection in connections.values where loop.second - connection.lastHeard > Self.idleTimeout {
            cutOff(connection)
        }
        handler?.tick()
        loop.endTurn()
    }

    func judgeUpgrade(_ head: HTTPHead) -> EventLoop.UpgradeVerdict {
        if let refusal = WebSocketHandshake.refusal(of: head) { return .refused(refusal) }
        guard let handler else { return .refused(.error(404, "No WebSocket is served here")) }
        guard connections.count < Self.most else {
            return .refused(.error(503, "\(Self.most) operators are connected already; close a page first"))
        }
        let request = HTTPRequest(head)
        if let refusal = handler.refusal(of: request) { return .refused(refusal) }
        return .admitted(.operators(request))
    }

    func opened(_ wsi: OpaquePointer, _ user: UnsafeMutableRawPointer, _ request: HTTPRequest) {
        last += 1
        connections[last] = Connection(wsi: wsi, lastHeard: loop.second)
        user.storeBytes(of: -last, as: Int32.self)
        let address = IPAddress(peerOf: Int32(lws_get_socket_fd(wsi)))?.text ?? ""
        handler?.opened(OpsSocket(id: last, address: address, inbox: loop.inbox), by: request)
    }

    /// lws stores a number for each WebSocket: the slot plus one for a client, and the negated ID for one of these.
    private func id(_ user: UnsafeMutableRawPointer?) -> OpsSocket.ID? {
        guard let number = user?.load(as: Int32.self), number < 0 else { return nil }
        return -number
    }

    /// Takes one piece of a message, or all of it. A negative result closes the socket.
    func received(_ user: UnsafeMutableRawPointer?, _ wsi: OpaquePointer, _ bytes: UnsafeRawBufferPointer) -> Int32 {
        guard let id = id(user), connections[id] != nil else { return -1 }
        connections[id]?.lastHeard = loop.second
        connections[id]?.partial.append(contentsOf: bytes)
        guard let size = connections[id]?.partial.count, size <= Self.maximumMessageBytes else { return -1 }
        guard lws_is_final_fragment(wsi) != 0, lws_remaining_packet_payload(wsi) == 0 else { return 0 }
        let message = connections[id]?.partial ?? []
        connections[id]?.partial = []
        if lws_frame_is_binary(wsi) == 0 { handler?.received(message, from: id) }
        return 0
    }

    func send(_ frame: Frame, to id: OpsSocket.ID) {
        guard let connection = connections[id] else { return }
        guard connection.pendingBytes + frame.bytes.count <= Self.maximumPendingBytes else {
            return cutOff(connection)
        }
        connections[id]?.pending.append(frame.bytes)
        connections[id]?.pendingBytes += frame.bytes.count
        lws_callback_on_writable(connection.wsi)
    }

    /// A negative result closes the socket.
    func writable(_ user: UnsafeMutableRawPointer?) -> Int32 {
        guard let id = id(user), let connection = connections[id], let bytes = connection.pending.first else {
            return 0
        }
        guard lws_partial_buffered(connection.wsi) == 0 else {
            lws_callback_on_writable(connection.wsi)
            return 0
        }
        connections[id]?.pending.removeFirst()
        connections[id]?.pendingBytes -= bytes.count
        guard roost_write_framed(connection.wsi, bytes, bytes.count) >= 0 else { return -1 }
        if connection.pending.count > 1 { lws_callback_on_writable(connection.wsi) }
        return 0
    }

    func closed(_ user: UnsafeMutableRawPointer?) {
        guard let id = id(user) else { return }
        user?.storeBytes(of: 0, as: Int32.self)
        connections[id] = nil
        handler?.closed(id)
    }

    private func cutOff(_ connection: Connection) {
        lws_set_timeout(connection.wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC)
        lws_cancel_service(lws_get_context(connection.wsi))
    }
}
