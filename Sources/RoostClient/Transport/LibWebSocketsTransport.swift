#if os(Linux)
    import Foundation

    /// WebSockets by libwebsockets, with a thread for each connection.
    struct LibWebSocketsTransport: WebSocketTransport {
        func open(_ request: WebSocketRequest) async throws(TransportFailure) -> any WebSocketConnection {
            guard let target = SocketTarget(request) else { throw .unreachable("The hub's URL has no host.") }
            let shared = SocketState()
            // The handle is made first: whatever happens, with it goes the thread.
            let connection = LibWebSocketsConnection(shared)
            let thread = Thread { SocketThread(target, shared).run() }
            thread.stackSize = 1 << 19
            thread.start()
            try await connection.opened()
            return connection
        }
    }

    typealias PlatformTransport = LibWebSocketsTransport
#endif
