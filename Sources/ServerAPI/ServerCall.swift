import Gateway
import HTTP
import Hub
import Wire

/// A parsed request of a backend.
enum ServerCall: Equatable {
    /// A question for all hubs.
    case all(ServerQuestion)
    /// Questions that every hub can answer alone.
    case presence(ChannelKey, after: PresencePage.Place?, limit: Int)
    case typing(ChannelKey)

    /// The fault of a request, one sentence for its sender.
    struct Problem: Error, Equatable {
        let status: UInt32
        let sentence: String

        init(_ sentence: String, status: UInt32 = 400) {
            self.status = status
            self.sentence = sentence
        }
    }

    /// Entries on a page.
    static let usualLimit = 100
    static let mostLimit = 500
    /// The greatest size of a body in bytes.
    static let longestBody = 65_536

    init(_ route: ServerRoute, _ request: HTTPRequest) throws(Problem) {
        guard request.body.count <= Self.longestBody else {
            throw Problem("The body may have \(Self.longestBody) bytes at most", status: 413)
        }
        switch route {
        case .channels:
            let prefix = ChannelKey.prefix + (request.query["prefix"] ?? "")
            self = .all(
                .channels(prefix: prefix, after: try Self.channelCursor(request), limit: try Self.pageLimit(request)))
        case .channel(let topic): self = .all(.channel(try Self.channelKey(topic, request)))
        case .presence(let topic):
            self = .presence(
                try Self.channelKey(topic, request), after: try Self.presenceCursor(request),
                limit: try Self.pageLimit(request))
        case .typing(let topic): self = .typing(try Self.channelKey(topic, request))
        case .stats: self = .all(.stats)
        case .user(let user): self = .all(.user(user))
        case .disconnect(let user): self = .all(.disconnect(user))
        case .refresh(let user): self = .all(.refresh(user))
        case .unsubscribe(let user): self = .all(try Self.unsubscribeQuestion(user, request))
        }
    }

    private static func channelKey(_ topic: String, _ request: HTTPRequest) throws(Problem) -> ChannelKey {
        let isPrivate: Bool
        switch request.query["private"] {
        case nil, "false", "0": isPrivate = false
        case "true", "1": isPrivate = true
        default: throw Problem("private must be true or false")
        }
        return ChannelKey(topic: ChannelKey.prefix + topic, isPrivate: isPrivate)
    }

    private static func pageLimit(_ request: HTTPRequest) throws(Problem) -> Int {
        guard let text = request.query["limit"] else { return usualLimit }
        guard let limit = Int(text), (1...mostLimit).contains(limit) else {
            throw Problem("limit must be a number from 1 to \(mostLimit)")
        }
        return limit
    }

    private static let staleCursor = Problem("cursor must be what next was in an answer to the same request")

    private static func channelCursor(_ request: HTTPRequest) throws(Problem) -> ChannelKey? {
        guard let text = request.query["cursor"] else { return nil }
        guard let key = ChannelKey(cursor: text) else { throw staleCursor }
        return key
    }

    private static func presenceCursor(_ request: HTTPRequest) throws(Problem) -> PresencePage.Place? {
        guard let text = request.query["cursor"] else { return nil }
        guard let place = PresencePage.Place(cursor: text) else { throw staleCursor }
        return place
    }

    /// Parses a body `{"topic": …}` with optional members `private` and `seconds`.
    private static func unsubscribeQuestion(_ user: Name, _ request: HTTPRequest) throws(Problem) -> ServerQuestion {
        let body: JSON
        do { body = try JSON(parsing: request.body) } catch {
            throw Problem("The body must be JSON, such as {\"topic\":\"room1\"}")
        }
        guard let topic = body["topic"]?.string, !topic.isEmpty else {
            throw Problem("topic is missing: the body must be JSON, such as {\"topic\":\"room1\"}")
        }
        let isPrivate: Bool
        switch body["private"] {
        case nil: isPrivate = false
        case let json? where json.isNull: isPrivate = false
        case let json?:
            guard let flag = json.bool else { throw Problem("private must be true or false") }
            isPrivate = flag
        }
        var seconds: Int?
        if let json = body["seconds"], !json.isNull {
            guard let number = json.int, (0...ChannelBars.longestSeconds).contains(number) else {
                throw Problem("seconds must be a number from 0 to \(ChannelBars.longestSeconds)")
            }
            seconds = number == 0 ? nil : number
        }
        return .unsubscribe(
            user, ChannelKey(topic: ChannelKey.prefix + topic, isPrivate: isPrivate), seconds: seconds)
    }
}

/// Cursors: the end of the previous page as URL-safe base64 (RFC 4648, section 5). They reveal nothing that the page
/// did not.
enum PageCursor {
    static func encode(_ bytes: [UInt8]) -> String {
        var out: [UInt8] = []
        Base64.append(bytes, to: &out)
        let text = out.filter { $0 != UInt8(ascii: "=") }.map { byte in
            byte == UInt8(ascii: "+") ? UInt8(ascii: "-") : byte == UInt8(ascii: "/") ? UInt8(ascii: "_") : byte
        }
        return String(decoding: text, as: UTF8.self)
    }

    static func decode(_ text: String) -> [UInt8]? {
        var bytes = text.utf8.map { byte in
            byte == UInt8(ascii: "-") ? UInt8(ascii: "+") : byte == UInt8(ascii: "_") ? UInt8(ascii: "/") : byte
        }
        while bytes.count % 4 != 0 { bytes.append(UInt8(ascii: "=")) }
        return Base64.decode(bytes)
    }
}

extension ChannelKey {
    var cursor: String { PageCursor.encode([isPrivate ? 1 : 0] + Array(topic.utf8)) }

    init?(cursor: String) {
        guard let bytes = PageCursor.decode(cursor), let first = bytes.first, first <= 1,
            let topic = String(validating: bytes.dropFirst(), as: UTF8.self)
        else { return nil }
        self.init(topic: topic, isPrivate: first == 1)
    }
}

extension PresencePage.Place {
    /// A ref contains no zero byte: the hub generates it.
    var cursor: String { PageCursor.encode(Array(ref.utf8) + [0] + key) }

    init?(cursor: String) {
        guard let bytes = PageCursor.decode(cursor), let end = bytes.firstIndex(of: 0),
            let ref = String(validating: bytes[..<end], as: UTF8.self)
        else { return nil }
        self.init(key: Array(bytes[(end + 1)...]), ref: Name(ref))
    }
}
