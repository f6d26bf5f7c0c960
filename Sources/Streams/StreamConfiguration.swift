/// What a stream is made with. Two that are alike are the same stream to a second `PUT` (Durable Streams, creating a stream).
package struct StreamConfiguration: Sendable, Equatable {
    /// As it was given, in lower case.
    package let contentType: String
    package var lifetime = Lifetime.unlimited
    /// Seconds of a producer's silence after which watchers are told `stalled`; zero: never; nil: the hub's default, for a
    /// producer that names itself or holds a connection.
    package var lease: Int?
    /// Milliseconds for which watchers' news are gathered, 0 to 500; nil: the hub's default.
    package var gathering: Int?
    /// Nil: the backend, which has no bound of its own. So it is with what an older hub wrote, as it noted no owners.
    package var owner: StreamOwner?

    package enum Lifetime: Sendable, Equatable {
        case unlimited
        /// So many seconds after it was last read or written.
        case idle(seconds: Int)
        /// Milliseconds since 1970.
        case until(Int64)
    }

    package init(contentType: String) { self.contentType = contentType.lowercased() }

    package var content: StreamContent { StreamContent(contentType: contentType) }

    /// Whether bytes of this type belong to the stream; parameters such as `charset` do not count (RFC 9110, section 8.3.1).
    package func takes(_ contentType: String) -> Bool {
        Self.mediaType(contentType.lowercased()).elementsEqual(Self.mediaType(self.contentType))
    }

    package func isAlike(_ other: StreamConfiguration) -> Bool {
        takes(other.contentType) && lifetime == other.lifetime && lease == other.lease && gathering == other.gathering
    }

    static func mediaType(_ text: String) -> Substring.UTF8View {
        text.utf8.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") }
    }
}

/// How a stream's bytes are cut and shown.
package enum StreamContent: Sendable, Equatable {
    /// UTF-8; never cut within a character.
    case text
    /// Messages, each one JSON value and a line feed; never cut within one.
    case json
    /// Shown in base64 where bytes cannot be.
    case binary

    /// - Parameter contentType: parameters such as `charset` do not count.
    package init(contentType: String) {
        let type = StreamConfiguration.mediaType(contentType)
        if type.elementsEqual("application/json".utf8) {
            self = .json
        } else if type.starts(with: "text/".utf8) {
            self = .text
        } else {
            self = .binary
        }
    }
}
