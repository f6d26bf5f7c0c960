#if os(Linux)
    import CWebSockets
    import DequeModule
    import Foundation
    import Synchronization

    /// Opens connections by libwebsockets, with a thread for each.
    struct LibWebSocketsTransport: WebSocketTransport {
        func open(_ request: WebSocketRequest) async throws(TransportFailure) -> any WebSocketConnection {
            guard let target = SocketTarget(request) else { throw .unreachable("The hub's URL has no host.") }
            let shared = SocketState()
            // The handle is created first: the thread always ends with it.
            let connection = LibWebSocketsConnection(shared)
            let thread = Thread { SocketThread(target, shared).runConnection() }
            thread.stackSize = 1 << 19
            thread.start()
            try await connection.waitUntilOpen()
            return connection
        }
    }

    typealias PlatformTransport = LibWebSocketsTransport

    /// A connection by libwebsockets. It closes when its last reference is released.
    final class LibWebSocketsConnection: WebSocketConnection {
        private let shared: SocketState

        init(_ shared: SocketState) { self.shared = shared }

        deinit { shared.close() }

        func waitUntilOpen() async throws(TransportFailure) { try await shared.waitUntilOpen() }

        func send(_ frame: WebSocketFrame) { shared.send(frame) }

        var pendingBytes: Int { shared.pendingBytes }

        func receive() async throws(TransportFailure) -> WebSocketFrame { try await shared.receive() }

        func close() { shared.close() }
    }

    /// A request in the parts that libwebsockets needs.
    struct SocketTarget: Sendable {
        let isTLS: Bool
        /// The name or address to connect to.
        let address: String
        let port: Int32
        /// The value of the Host header.
        let host: String
        let path: String
        let headers: [(name: String, value: String)]
        let maximumMessageBytes: Int

        init?(_ request: WebSocketRequest) {
            guard let parts = URLComponents(url: request.url, resolvingAgainstBaseURL: true),
                let host = parts.percentEncodedHost, !host.isEmpty
            else { return nil }
            isTLS = parts.scheme == "wss"
            // IPv6 addresses have brackets in URLs and headers (RFC 3986, section 3.2.2), but nowhere else.
            address = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
            port = Int32(clamping: parts.port ?? (isTLS ? 443 : 80))
            self.host = parts.port.map { "\(host):\($0)" } ?? host
            path = parts.percentEncodedPath + (parts.percentEncodedQuery.map { "?" + $0 } ?? "")
            headers = request.headers
            maximumMessageBytes = request.maximumMessageBytes
        }
    }

    /// The state shared by a connection and its thread: outgoing and incoming messages, and the end. Callable from any
    /// thread.
    final class SocketState: Sendable {
        private struct State {
            /// The address of the `roost_socket` while it exists: a destroyed one must not be woken.
            var socket: UInt?
            var outgoing = Deque<WebSocketFrame>()
            var pendingBytes = 0
            var isClosing = false
            var isPaused = false
            var failure: TransportFailure?
        }

        /// The connection's requests to its thread.
        struct Requests {
            var hasOutgoing: Bool
            var isClosing: Bool
            var isPaused: Bool
        }

        /// The numbers of received messages at which reading stops and resumes.
        private static let highWater = 512
        private static let lowWater = 64

        private let state = Mutex(State())
        /// Nothing is dropped: reading stops before memory runs out.
        private let incoming = Mailbox<WebSocketFrame>(limit: .max)
        private let opening = Mailbox<TransportFailure?>(limit: 2)

        // MARK: For the connection

        func waitUntilOpen() async throws(TransportFailure) {
            let delivery: Mailbox<TransportFailure?>.Delivery?
            do throws(RoostError) { delivery = try await opening.next() } catch { throw .cancelled }
            guard case .element(let failure) = delivery else { throw .cancelled }
            if let failure { throw failure }
        }

        func send(_ frame: WebSocketFrame) {
            state.withLock { state in
                guard state.failure == nil, !state.isClosing else { return }
                state.outgoing.append(frame)
                state.pendingBytes += frame.count
                Self.wakeSocket(state)
            }
        }

        var pendingBytes: Int { state.withLock { $0.pendingBytes } }

        func receive() async throws(TransportFailure) -> WebSocketFrame {
            if incoming.count < Self.lowWater {
                state.withLock { state in
                    guard state.isPaused else { return }
                    state.isPaused = false
                    Self.wakeSocket(state)
                }
            }
            let delivery: Mailbox<WebSocketFrame>.Delivery?
            do throws(RoostError) { delivery = try await incoming.next() } catch { throw .cancelled }
            guard case .element(let frame) = delivery else { throw state.withLock { $0.failure } ?? .cancelled }
            return frame
        }

        func close() {
            state.withLock { state in
                state.isClosing = true
                Self.wakeSocket(state)
            }
        }

        private static func wakeSocket(_ state: borrowing State) {
            if let socket = state.socket.flatMap({ OpaquePointer(bitPattern: $0) }) { roost_socket_wake(socket) }
        }

        // MARK: For the thread

        /// Sets the socket to wake for new requests; nil stops waking.
        func setSocket(_ socket: OpaquePointer?) {
            let address = socket.map { UInt(bitPattern: $0) }
            state.withLock { $0.socket = address }
        }

        func reportOpen() { opening.put(nil) }

        var requests: Requests {
            state.withLock { state in
                Requests(hasOutgoing: !state.outgoing.isEmpty, isClosing: state.isClosing, isPaused: state.isPaused)
            }
        }

        func nextToSend() -> WebSocketFrame? {
            state.withLock { state in
                let frame = state.outgoing.popFirst()
                state.pendingBytes -= frame?.count ?? 0
                return frame
            }
        }

        func frameReceived(_ frame: WebSocketFrame) {
            incoming.put(frame)
            guard incoming.count >= Self.highWater else { return }
            state.withLock { $0.isPaused = true }
        }

        /// The connection has ended. Only the first reason counts.
        func connectionEnded(_ failure: TransportFailure) {
            let failure = state.withLock { state in
                let first = state.failure ?? (state.isClosing ? .cancelled : failure)
                state.failure = first
                state.outgoing = []
                state.pendingBytes = 0
                return first
            }
            opening.put(failure)
            incoming.finish()
        }
    }
#endif
