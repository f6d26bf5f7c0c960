/// What happened to a connection, or to a request on it.
enum TransportEvent {
    case opened
    /// It is gone, or never came to be.
    case closed(why: String)
    /// It takes nothing new; what was sent before may still be answered.
    case goAway(why: String)
    case pong
    case answered(SendQueue.Ticket, Answer)
    /// The server has certainly not looked at the request.
    case unseen(SendQueue.Ticket)
    /// The request left, and there will be no answer.
    case lost(SendQueue.Ticket)
}
