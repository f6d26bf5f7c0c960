#if canImport(Darwin)
    import Foundation

    /// WebSockets by URLSession, which follows the device's proxies and low-data rules.
    struct URLSessionTransport: WebSocketTransport {
        func open(_ request: WebSocketRequest) async throws(TransportFailure) -> any WebSocketConnection {
            let connection = URLSessionConnection(request)
            try await connection.opened()
            return connection
        }
    }

    typealias PlatformTransport = URLSessionTransport
#endif
