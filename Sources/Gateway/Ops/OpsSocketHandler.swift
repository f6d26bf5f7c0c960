package import HTTP
package import Wire

/// Serves the WebSockets of the operator's port. Called on a loop's thread: it must not wait.
package protocol OpsSocketHandler: Sendable {
    /// Nil lets the upgrade go on.
    func refusal(of request: HTTPRequest) -> HTTPResponse?
    func opened(_ socket: OpsSocket, by request: HTTPRequest)
    /// A whole text message.
    func received(_ message: [UInt8], from socket: OpsSocket.ID)
    func closed(_ socket: OpsSocket.ID)
    /// Once a second.
    func tick()
}

/// The way to one WebSocket of the operator's port, from any thread.
package struct OpsSocket: Sendable {
    package typealias ID = Int32

    package let id: ID
    /// The peer's.
    package let address: String
    let inbox: LoopInbox

    package func send(_ frame: Frame) {
        inbox.post(.tellOperator(id, frame))
    }
}
