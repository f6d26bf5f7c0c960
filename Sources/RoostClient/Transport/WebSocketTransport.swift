package import Foundation

/// Makes connections. Behind this lies all that differs between platforms.
package protocol WebSocketTransport: Sendable {
    /// A connection whose upgrade was answered. Ends with `.cancelled` when the calling task is cancelled.
    func open(_ request: WebSocketRequest) async throws(TransportFailure) -> any WebSocketConnection
}

/// What a connection is made to.
package struct WebSocketRequest: Sendable {
    /// `ws` or `wss`.
    package let url: URL
    /// Names in lower case.
    package let headers: [(name: String, value: String)]
    /// What one message from the hub may have, in bytes.
    package let maximumMessageBytes: Int
}

/// An open connection.
package protocol WebSocketConnection: Sendable {
    /// Hands a message to the connection, which sends in this order. What cannot be sent is lost with the connection.
    func send(_ frame: WebSocketFrame)
    /// Bytes that were handed over and not taken by the network yet.
    var pendingBytes: Int { get }
    /// The next message; throws once, with the reason, when the connection has ended. One caller at a time.
    func receive() async throws(TransportFailure) -> WebSocketFrame
    /// Sends what was handed over and closes with code 1000. `receive` throws soon.
    func close()
}
