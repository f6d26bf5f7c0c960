/// All that a worker has to know; every worker of a run gets the same.
struct LoadPlan: Codable, Sendable {
    var scenario: Scenario
    var target: Target
    var dialect: Dialect
    /// Another protocol than Phoenix'.
    var raw: RawProtocol?
    /// Distinguishes this run's messages from those of others.
    var run: UInt32
    var seed: UInt64
    var sockets: Int
    var channels = 1
    var channelsPerSocket = 1
    var workers = 1
    /// Loopback addresses that sockets come from; 0 is as many as they need.
    var sources = 0
    var ramp = 256
    var rampRate = 0.0
    /// Seconds between a client's heartbeats; 0 for none.
    var heartbeat = 25
    /// Messages a second, of all publishers together; rows, where rows are written.
    var rate = 0.0
    /// How many messages are due at the same moment.
    var burst = 1
    /// Bytes of a message between the publisher's prefix and suffix.
    var size = 150
    var seconds = 10.0
    var warmUp = 0.0
    /// How long to wait for the last deliveries, in seconds.
    var settle = 10.0
    /// How many sockets stop to read.
    var stalled = 0
    /// Whether sockets wait until the server cuts them off, instead of going themselves.
    var waitsForCut = false
    var rows: RowPlan?
    var chat = ChatPlan()

    /// Sockets that only publish.
    var publishers: Int {
        rate > 0 && (scenario == .fanout || scenario == .slow)
            ? (channels + Self.channelsPerPublisher - 1) / Self.channelsPerPublisher : 0
    }

    /// Servers bound how many channels a socket may join, at 100 by default.
    static let channelsPerPublisher = 50
}

/// What the sockets do.
enum Scenario: String, Codable, Sendable {
    case idle, fanout, chat, changes, storm, presence, slow, soak

    var primaryLatency: LatencyKind {
        switch self {
        case .idle: .join
        case .fanout, .slow: .broadcast
        case .chat, .changes, .soak: .commit
        case .storm: .back
        case .presence: .presence
        }
    }

    var hasConversations: Bool { self == .chat || self == .changes || self == .soak }
}

/// Where the load goes: a WebSocket's URL and what is said at its door.
struct Target: Codable, Sendable {
    let host: String
    let port: UInt16
    let path: String
    let authority: String
    let isSecure: Bool
    /// Whether any certificate will do.
    var isInsecure = false
    /// A file of certificate authorities instead of the system's.
    var authorities: String?
    /// `Sec-WebSocket-Protocol`.
    var subprotocol: String?
    /// What the path ends in: version and token.
    var query = ""

    /// - Parameters:
    ///   - url: `ws://host:port/path` or `wss://…`.
    ///   - stated: a path instead of the URL's.
    init(url: String, path stated: String?) throws {
        let scheme = ["ws://", "wss://"].first { url.hasPrefix($0) }
        guard let scheme else { throw LoadFailure("The URL \(url) does not begin with ws:// or wss://.") }
        isSecure = scheme == "wss://"
        let rest = url.dropFirst(scheme.count)
        path = stated ?? rest.firstIndex(of: "/").map { String(rest[$0...]) } ?? "/realtime/v1/websocket"
        authority = String(rest.prefix { $0 != "/" })
        host = String(authority.prefix { $0 != ":" })
        let number = authority.contains(":") ? UInt16(authority.drop { $0 != ":" }.dropFirst()) : isSecure ? 443 : 80
        guard let number, !host.isEmpty else { throw LoadFailure("The URL \(url) has no host and port.") }
        port = number
    }

    /// Without the token.
    var description: String { "\(isSecure ? "wss" : "ws")://\(authority)\(path)" }

    var request: [UInt8] {
        let separator = query.isEmpty ? "" : path.contains("?") ? "&" : "?"
        var lines = [
            "GET \(path)\(separator)\(query) HTTP/1.1", "Host: \(authority)", "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
        ]
        if let subprotocol { lines.append("Sec-WebSocket-Protocol: \(subprotocol)") }
        return Array((lines + ["", ""]).joined(separator: "\r\n").utf8)
    }
}

/// How rows are written.
struct RowPlan: Codable, Sendable {
    /// As libpq understands it.
    var conninfo: String
    var schema: String
    var table: String
    var filterColumn: String
    /// $1 the conversation, $2 the stamp.
    var insert: String
    /// Sessions that write, of all workers together.
    var writers: Int
    /// What each subscriber adds to its joins, in the order of the sockets' numbers; empty for nothing.
    var tokens: [String] = []
}

/// What people do in conversations beside reading: rows alone where all is zero.
struct ChatPlan: Codable, Sendable {
    /// Sockets in a conversation; 0 spreads the sockets over `channels` conversations in turn.
    var members = 0
    var conversationsPerSocket = 1
    /// Whether the author of a row is seen typing before it.
    var types = false
    /// The share of the others that broadcast a read receipt.
    var readers = 0.0
    var tracksPresence = false
    /// The share of the sockets that leaves and comes back in a minute.
    var churn = 0.0

    /// Seconds before a row that its author begins to type.
    static let typingLead = 0.3...1.5
    /// Seconds after a row that its readers confirm it.
    static let readingDelay = 0.2...3.0
    /// Seconds that those who leave stay away.
    static let absence = 0.5...8.0
}

/// The moments of a run, by `MonotonicClock`, which all processes of a machine share.
struct Timing: Codable, Sendable {
    var start: UInt64
    /// Latencies count from here on: the end of the warm-up.
    var measuredFrom: UInt64
    /// Where the schedule ends.
    var end: UInt64

    init(start: UInt64, warmUp: Double, seconds: Double) {
        self.start = start
        measuredFrom = start + UInt64(warmUp * 1e9)
        end = measuredFrom + UInt64(seconds * 1e9)
    }
}
