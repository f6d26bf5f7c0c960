import Hub
import Wire

/// A question or an order for every hub of a cluster. Between hubs it is a JSON object; a hub that does not know a
/// question does not answer.
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
            out.writeMember("ask", name.rawValue)
            switch self {
            case .channels(let prefix, let after, let limit):
                out.writeMember("prefix", prefix)
                out.writeMember("limit", limit)
                if let after { out.object("after") { $0.addKey(of: after) } }
            case .channel(let key): out.addKey(of: key)
            case .user(let user), .disconnect(let user), .refresh(let user): out.writeMember("user", user.text)
            case .stats: break
            case .unsubscribe(let user, let key, let seconds):
                out.writeMember("user", user.text)
                out.addKey(of: key)
                if let seconds { out.writeMember("seconds", seconds) }
            }
        }
    }

    /// Nil if this hub does not know the question.
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

    /// Whether it changes something, so that it has to be logged.
    var isDeed: Bool {
        switch self {
        case .channels, .channel, .user, .stats: false
        case .disconnect, .unsubscribe, .refresh: true
        }
    }
}

extension JSONWriter {
    /// Between hubs: the topic in the form of clients.
    mutating func addKey(of key: ChannelKey) {
        writeMember("topic", key.topic)
        writeMember("private", key.isPrivate)
    }

    /// In responses to backends: the topic without its prefix, as elsewhere in the HTTP API.
    mutating func addShownKey(_ key: ChannelKey) {
        writeMember("topic", String(key.name))
        writeMember("private", key.isPrivate)
    }
}

extension ChannelKey {
    init?(_ json: JSON) {
        guard let topic = json["topic"]?.string, let isPrivate = json["private"]?.bool else { return nil }
        self.init(topic: topic, isPrivate: isPrivate)
    }
}
