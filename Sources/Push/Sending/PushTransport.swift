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
