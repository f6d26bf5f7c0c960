import Hub

/// The connections as whoever decides sees them. Nothing here waits.
protocol PushTransport: AnyObject {
    typealias Connection = UInt64

    /// Begins to connect; nil where that cannot even begin.
    func open(to server: ServerName) -> Connection?
    /// False where the connection takes nothing any more.
    func post(_ push: Push, _ ticket: SendQueue.Ticket, with token: ProviderToken, on connection: Connection) -> Bool
    /// Gives up waiting for an answer. Whether the request had left; nil where it is not known any more.
    func cancel(_ ticket: SendQueue.Ticket, on connection: Connection) -> Bool?
    func ping(_ connection: Connection)
    func close(_ connection: Connection)
    /// How many requests the peer allows at a time.
    func limit(of connection: Connection) -> Int
}

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

/// One of the services that notifications go to. Nothing is shared between two: not a connection, not a pause.
struct ServerName: Hashable, Sendable {
    let environment: PushEnvironment
    let isForBroadcasts: Bool

    init(_ target: Push.Target) {
        environment = target.environment
        isForBroadcasts =
            switch target {
            case .device: false
            case .channel: true
            }
    }
}

extension ServerName: CustomStringConvertible {
    var description: String { environment.rawValue + (isForBroadcasts ? " broadcasts" : "") }
}
