import Hub
import Wire

/// What every hub of a cluster is asked, or has to do. Between hubs it is a JSON object; a hub that does not know a question has no answer.
enum ServerQuestion: Sendable, Equatable {
    case channels(prefix: String, after: ChannelKey?, limit: Int)
    case channel(ChannelKey)
    case user(Name)
    case stats
    case disconnect(Name)
    case unsubscribe(Name, ChannelKey, seconds: Int?)
    case refresh(Name)

    private enum Kind: String { case channels, channel, user, stats, disconnect, unsubscribe, refresh }

    private var name: Kind {
        switch self {
        case .channels: .channels
        case .channel: .channel
        case .user: .user
        case .stats: .stats
        case .disconnect: .disconnect
        case .unsubscribe: .unsubscribe
        case .refresh: .refresh
        }
    }

    var encoded: [UInt8] {
        JSONWriter.object { out in
            out.member("ask", name.rawValue)
            switch self {
            case .channels(let prefix, let after, let limit):
                out.member("prefix", prefix)
                out.member("limit", limit)
                if let after { out.object("after") { $0.members(of: after) } }
            case .channel(let key): out.members(of: key)
            case .user(let user), .disconnect(let user), .refresh(let user): out.member("user", user.text)
            case .stats: break
            case .unsubscribe(let user, let key, let seconds):
                out.member("user", user.text)
                out.members(of: key)
                if let seconds { out.member("seconds", seconds) }
            }
        }
    }

    /// Nil where it is none that this hub knows.
    init?(_ bytes: [UInt8]) {
        let json: JSON
        do { json = try JSON(parsing: bytes) } catch { return nil }
        let user = json["user"]?.string.map { Name($0) }
        let key = ChannelKey(json)
        switch json["ask"]?.string.flatMap({ Kind(rawValue: $0) }) {
        case .channels:
            guard let prefix = json["prefix"]?.string, let limit = json["limit"]?.int,
                (1...ServerCall.mostLimit).contains(limit)
            else { return nil }
            self = .channels(prefix: prefix, after: json["after"].flatMap { ChannelKey($0) }, limit: limit)
        case .channel:
            guard let key else { return nil }
            self = .channel(key)
        case .user:
            guard let user else { return nil }
            self = .user(user)
        case .stats: self = .stats
        case .disconnect:
            guard let user else { return nil }
            self = .disconnect(user)
        case .unsubscribe:
            guard let user, let key else { return nil }
            self = .unsubscribe(user, key, seconds: json["seconds"]?.int)
        case .refresh:
            guard let user else { return nil }
            self = .refresh(user)
        case nil: return nil
        }
    }

    /// Whether it changes something, so that it is written down who had it done.
    var isDeed: Bool {
        switch self {
        case .channels, .channel, .user, .stats: false
        case .disconnect, .unsubscribe, .refresh: true
        }
    }
}

extension JSONWriter {
    /// Between hubs: the topic as clients write it.
    mutating func members(of key: ChannelKey) {
        member("topic", key.topic)
        member("private", key.isPrivate)
    }

    /// In answers to backends: without its prefix, as elsewhere in the HTTP API.
    mutating func shown(_ key: ChannelKey) {
        member("topic", String(key.name))
        member("private", key.isPrivate)
    }
}

extension ChannelKey {
    init?(_ json: JSON) {
        guard let topic = json["topic"]?.string, let isPrivate = json["private"]?.bool else { return nil }
        self.init(topic: topic, isPrivate: isPrivate)
    }
}
