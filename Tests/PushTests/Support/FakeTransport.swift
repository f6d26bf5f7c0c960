@testable import Push

/// Connections that do what a test says.
final class FakeTransport: PushTransport {
    struct Request {
        let push: Push
        let request: PushRequest
    }

    /// The notifications that may be sent, by their ids: a request has the id alone.
    var known: [String: Push] = [:]

    var opens = true
    var isFull = false
    var limit = 500
    /// What a request that is given up is said to have been.
    var hasLeft = true

    private(set) var opened: [(connection: Connection, server: ServerName)] = []
    private(set) var closed: [Connection] = []
    private(set) var pings: [Connection] = []
    /// Everything that was ever sent, in order.
    private(set) var posts: [(connection: Connection, ticket: SendQueue.Ticket, request: Request)] = []
    private(set) var onTheirWay: [Connection: [SendQueue.Ticket: Request]] = [:]
    /// Left, and will not be answered.
    var doubtful: [Push] = []
    /// What is to be told to the sender.
    var events: [(connection: Connection, event: TransportEvent)] = []

    func open(to server: ServerName) -> Connection? {
        guard opens else { return nil }
        let connection = Connection(opened.count + 1)
        opened.append((connection, server))
        onTheirWay[connection] = [:]
        return connection
    }

    func post(_ request: PushRequest, _ ticket: SendQueue.Ticket, on connection: Connection) -> Bool {
        guard !isFull, onTheirWay[connection] != nil,
            let push = known[request.headers["apns-id"] ?? request.headers[":path"] ?? ""]
        else {
            return false
        }
        let request = Request(push: push, request: request)
        posts.append((connection, ticket, request))
        onTheirWay[connection]?[ticket] = request
        return true
    }

    func cancel(_ ticket: SendQueue.Ticket, on connection: Connection) -> Bool? {
        guard let request = onTheirWay[connection]?.removeValue(forKey: ticket) else { return nil }
        if hasLeft { doubtful.append(request.push) }
        return hasLeft
    }

    func ping(_ connection: Connection) { pings.append(connection) }

    func close(_ connection: Connection) {
        closed.append(connection)
        lose(connection)
    }

    func limit(of connection: Connection) -> Int { limit }

    /// All that is on its way there is lost.
    func lose(_ connection: Connection) {
        let tickets = onTheirWay.removeValue(forKey: connection) ?? [:]
        doubtful += tickets.values.map(\.push)
        events += tickets.keys.sorted().map { (connection, .lost($0)) }
    }

    /// It is not on its way any more.
    func land(_ ticket: SendQueue.Ticket, _ connection: Connection) -> Request? {
        onTheirWay[connection]?.removeValue(forKey: ticket)
    }
}

extension RequestHeaders {
    subscript(_ name: String) -> String? {
        let texts = bytes.split(separator: 0, omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
        return texts.firstIndex(of: name).map { texts[$0 + 1] }
    }
}
