import Hub

/// The connections to a push service as the sender sees them. Nothing here waits.
protocol PushTransport: AnyObject {
    typealias Connection = UInt64

    /// Begins to connect.
    ///
    /// - Returns: nil where that cannot even begin.
    func open(to server: ServerName) -> Connection?
    /// Sends a request.
    ///
    /// - Returns: false where the connection takes nothing any more.
    func post(_ request: PushRequest, _ ticket: SendQueue.Ticket, on connection: Connection) -> Bool
    /// Gives up waiting for an answer.
    ///
    /// - Returns: whether the request had left; nil where the request is not known any more.
    func cancel(_ ticket: SendQueue.Ticket, on connection: Connection) -> Bool?
    func ping(_ connection: Connection)
    func close(_ connection: Connection)
    /// How many requests at a time the peer allows.
    func limit(of connection: Connection) -> Int
}

/// What happened to a connection, or to a request on it.
enum TransportEvent {
    case opened
    /// The connection is gone, or could not be opened.
    case closed(why: String)
    /// The connection takes nothing new; what was sent before may still be answered.
    case goAway(why: String)
    case pong
    case answered(SendQueue.Ticket, Answer)
    /// The server has certainly not looked at the request.
    case unseen(SendQueue.Ticket)
    /// The request left, and there will be no answer.
    case lost(SendQueue.Ticket)
}
