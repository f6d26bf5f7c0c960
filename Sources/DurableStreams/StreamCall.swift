package import HTTP
package import Streams
import Wire

/// A request about a stream, parsed from its head alone (Durable Streams, HTTP operations). The sender and its rights
/// are checked elsewhere.
package struct StreamCall: Sendable {
    package let name: StreamName
    package private(set) var action: Action
    /// The part of the path before the name.
    private let root: String

    package enum Action: Sendable {
        /// The body is the stream's first content.
        ///
        /// - Parameter isNext: `Stream-Generation: next`: a stream that has ended is replaced.
        case create(StreamConfiguration, closes: Bool, isNext: Bool)
        /// The append without its body.
        case append(StreamAppend, hasBody: Bool)
        case read(StreamReading)
        /// A HEAD request.
        case describe
        /// Only this generation, if one is named; the same holds for `cancel`.
        case delete(StreamID?)
        case cancel(StreamID?)
    }

    /// The right that a sender needs.
    package enum Right: Sendable { case read, write, cancel }

    package var right: Right {
        switch action {
        case .create, .append, .delete: .write
        case .read, .describe: .read
        case .cancel: .cancel
        }
    }

    /// The same call, limited to this generation; nil if it is neither an append nor a cancel.
    package func meant(for generation: StreamID) -> StreamCall? {
        var call = self
        switch action {
        case .append(var append, let hasBody):
            append.generation = generation
            call.action = .append(append, hasBody: hasBody)
        case .cancel: call.action = .cancel(generation)
        case .create, .read, .describe, .delete: return nil
        }
        return call
    }

    package var isRead: Bool { if case .read = action { true } else { false } }

    /// Whether the body may be appended as it arrives: the stream's content may be cut anywhere, and the sender does
    /// not number its requests.
    package var isOpenEnded: Bool {
        guard case .append(let append, _) = action, append.producer == nil, append.sequence == nil else { return false }
        return append.contentType.map { StreamContent(contentType: $0) != .json } ?? false
    }

    private static let roots = ["/streams/", "/realtime/v1/streams/"]
    private static let cancelling = "/cancel"

    /// Nil if the path does not belong to streams.
    ///
    /// - Parameter routes: the application's own paths.
    /// - Throws: the answer to an invalid request.
    package init?(_ head: HTTPHead, routes: [StreamRoute] = []) throws(StreamComplaint) {
        if !routes.isEmpty, let route = routes.first(where: { $0.path == head.path }) {
            guard head.method == "GET" else {
                throw .method(allow: route.backend == nil ? "GET, OPTIONS" : "GET, POST, OPTIONS")
            }
            name = try route.streamName(head.allQuery)
            root = Self.roots[0]
            action = .read(
                try StreamReading(messagesFor: head, namedBy: route.eventMember, areTurns: route.areTurns))
            return
        }
        // Compared by bytes: a mark that combines with the slash belongs to the name.
        guard let root = Self.roots.first(where: { head.path.utf8.starts(with: $0.utf8) }) else { return nil }
        var rest = head.path.utf8.dropFirst(root.utf8.count)
        let cancels = rest.suffix(Self.cancelling.utf8.count).elementsEqual(Self.cancelling.utf8)
        if cancels { rest = rest.dropLast(Self.cancelling.utf8.count) }
        guard let name = StreamName(String(Substring(rest))) else {
            throw .badRequest(
                "This is not a name of a stream: a name has 1 to 200 bytes, and no empty part between slashes")
        }
        self.name = name
        self.root = root
        guard !cancels else {
            guard head.method == "POST" else { throw .method(allow: "POST, OPTIONS") }
            action = .cancel(try Self.parseGeneration(head))
            return
        }
        switch head.method {
        case "PUT":
            action = try .create(
                Self.parseConfiguration(head), closes: Self.closesStream(head), isNext: Self.opensNext(head))
        case "POST": action = try .append(Self.parseAppend(head), hasBody: head.hasBody)
        case "GET": action = .read(try StreamReading(head))
        case "HEAD": action = .describe
        case "DELETE": action = .delete(try Self.parseGeneration(head))
        default: throw .method(allow: "GET, HEAD, PUT, POST, DELETE, OPTIONS")
        }
    }

    /// Only the exact word counts; anything else is ignored (section 4.1).
    private static func closesStream(_ head: HTTPHead) -> Bool {
        head.field("stream-closed")?.lowercased() == "true"
    }

    private static func opensNext(_ head: HTTPHead) throws(StreamComplaint) -> Bool {
        guard let word = head.field("stream-generation") else { return false }
        guard word.lowercased() == "next" else {
            throw .badRequest("Stream-Generation of a PUT is next: it opens the name again once its stream has ended")
        }
        return true
    }

    /// The requested generation; nil for the current one.
    private static func parseGeneration(_ head: HTTPHead) throws(StreamComplaint) -> StreamID? {
        guard let text = head.field("stream-generation") else { return nil }
        guard let generation = StreamID(text) else {
            throw .badRequest("This Stream-Generation was never given out: send one that you received")
        }
        return generation
    }

    /// The stream's address, for `Location`.
    ///
    /// - Parameters:
    ///   - scheme: the client's scheme.
    ///   - host: the request's field; without one, the address is a path.
    package func url(scheme: String, host: String?) -> String {
        (host.map { scheme + "://" + $0 } ?? "") + root + Self.percentEncoded(name.text)
    }

    /// RFC 3986, section 2.1; slashes stay.
    private static func percentEncoded(_ name: String) -> String {
        var out = ""
        for byte in name.utf8 {
            let character = Character(Unicode.Scalar(byte))
            if character.isASCII, character.isLetter || character.isNumber || "-._~/".contains(character) {
                out.append(character)
            } else {
                out += byte < 16 ? "%0" : "%"
                out += String(byte, radix: 16, uppercase: true)
            }
        }
        return out
    }

    // MARK: Creating

    private static func parseConfiguration(_ head: HTTPHead) throws(StreamComplaint) -> StreamConfiguration {
        for field in ["stream-forked-from", "stream-fork-offset", "stream-fork-sub-offset"]
        where head.field(field) != nil {
            throw .notImplemented("Forks of streams are not supported: create a separate stream")
        }
        let type = head.field("content-type") ?? ""
        var configuration = StreamConfiguration(contentType: type.isEmpty ? "application/octet-stream" : type)
        let (idle, expiry) = (head.field("stream-ttl"), head.field("stream-expires-at"))
        switch (idle, expiry) {
        case (_?, _?): throw .badRequest("Stream-TTL and Stream-Expires-At exclude each other: send one of them")
        case (let idle?, nil):
            guard let seconds = wholeNumber(idle, most: 1 << 40) else {
                throw .badRequest("Stream-TTL is a whole number of seconds, without sign or leading zeros")
            }
            configuration.lifetime = .idle(seconds: seconds)
        case (nil, let expiry?):
            guard let time = Timestamp(expiry) else {
                throw .badRequest("Stream-Expires-At is a time as RFC 3339 writes it, such as 2026-01-31T12:00:00Z")
            }
            configuration.lifetime = .until(time.milliseconds)
        case (nil, nil): break
        }
        if let lease = head.field("stream-lease") {
            guard let seconds = wholeNumber(lease, most: 86_400) else {
                throw .badRequest(
                    "Stream-Lease is a whole number of seconds up to 86400; 0 is for a producer that may be silent")
            }
            configuration.lease = seconds
        }
        return configuration
    }

    // MARK: Appending

    private static func parseAppend(_ head: HTTPHead) throws(StreamComplaint) -> StreamAppend {
        var append = StreamAppend(body: [])
        append.closes = closesStream(head)
        append.sequence = head.field("stream-seq")
        append.generation = try parseGeneration(head)
        append.producer = try parseStamp(head)
        guard head.hasBody else {
            guard append.closes else {
                throw .badRequest("The body is empty: send what is to be appended, or Stream-Closed: true")
            }
            return append
        }
        guard let type = head.field("content-type"), !type.isEmpty else {
            throw .badRequest("Content-Type is missing: send the stream's")
        }
        append.contentType = type
        return append
    }

    private static func parseStamp(_ head: HTTPHead) throws(StreamComplaint) -> ProducerStamp? {
        let (id, epoch, sequence) = (
            head.field("producer-id"), head.field("producer-epoch"), head.field("producer-seq")
        )
        if id == nil, epoch == nil, sequence == nil { return nil }
        guard let id, let epoch, let sequence else {
            throw .badRequest("Producer-Id, Producer-Epoch and Producer-Seq belong together: send all three or none")
        }
        guard !id.isEmpty, id.utf8.count <= 200 else { throw .badRequest("Producer-Id has 1 to 200 bytes") }
        guard let epoch = wholeNumber(epoch, most: ProducerStamp.largest),
            let sequence = wholeNumber(sequence, most: ProducerStamp.largest)
        else { throw .badRequest("Producer-Epoch and Producer-Seq are whole numbers up to 2^53 - 1") }
        return ProducerStamp(id: Name(id), epoch: epoch, sequence: sequence)
    }

    /// Parses digits without a leading zero.
    private static func wholeNumber(_ text: String, most: Int) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            text == "0" || text.utf8.first != 0x30,
            let number = Int(text), number <= most
        else { return nil }
        return number
    }
}
