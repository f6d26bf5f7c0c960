import Hub

/// The connections to a push service as seen by the sender. Nothing here waits.
protocol PushTransport: AnyObject {
    typealias Connection = UInt64

    /// Starts to connect.
    ///
    /// - Returns: nil if even the start fails.
    func open(to server: ServerName) -> Connection?
    /// Sends a request.
    ///
    /// - Returns: false if the connection accepts nothing more.
    func post(_ request: PushRequest, _ ticket: SendQueue.Ticket, on connection: Connection) -> Bool
    /// Stops waiting for an answer.
    ///
    /// - Returns: whether the request had left; nil if the request is no longer known.
    func cancel(_ ticket: SendQueue.Ticket, on connection: Connection) -> Bool?
    func ping(_ connection: Connection)
    func close(_ connection: Connection)
    /// The number of concurrent requests that the peer allows.
    func limit(of connection: Connection) -> Int
}

/// An event of a connection, or of a request on it.
enum TransportEvent {
    case opened
    /// The connection is gone, or could not be opened.
    case closed(why: String)
    /// The connection accepts nothing new; earlier requests may still be answered.
    case goAway(why: String)
    case pong
    case answered(SendQueue.Ticket, Answer)
    /// The server has certainly not processed the request.
    case unseen(SendQueue.Ticket)
    /// The request left, and there will be no answer.
    case lost(SendQueue.Ticket)
}
