#if os(Linux)
    /// The handle of a connection. When nobody holds it any more the connection is closed.
    final class LibWebSocketsConnection: WebSocketConnection {
        private let shared: SocketState

        init(_ shared: SocketState) { self.shared = shared }

        deinit { shared.close() }

        func opened() async throws(TransportFailure) { try await shared.opened() }

        func send(_ frame: WebSocketFrame) { shared.send(frame) }

        var pendingBytes: Int { shared.pendingBytes }

        func receive() async throws(TransportFailure) -> WebSocketFrame { try await shared.receive() }

        func close() { shared.close() }
    }
#endif
