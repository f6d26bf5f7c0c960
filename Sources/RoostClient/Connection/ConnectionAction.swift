/// What the connection's logic wants done.
package enum ConnectionAction: Equatable {
    /// Call the app's callback; answer with `token(_:_:)`.
    case ask(Int)
    /// Answers to this question are not wanted any more.
    case cancelAsk(Int)
    /// Make socket number `Int`, with this token.
    case open(Int, token: String)
    /// End the socket, or the attempt to make it.
    case close(Int)
    case sendHeartbeat
    /// The socket is there.
    case up
    /// It is not there any more.
    case down(reason: String)
    /// Channels are to use it from here on.
    case token(String)
    case show(ConnectionState)
    case tell(SocketEvent)
}
