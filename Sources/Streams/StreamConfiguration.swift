/// The properties with which a stream is created. A second `PUT` with equivalent ones finds the same stream (Durable
/// Streams, creating a stream).
package struct StreamConfiguration: Sendable, Equatable {
    /// As given, in lower case.
    package let contentType: String
    package var lifetime = Lifetime.unlimited
    /// Seconds of a producer's silence after which watchers are told `stalled`; zero: never; nil: the hub's default,
    /// for a producer that names itself or holds a connection.
    package var lease: Int?
    /// Milliseconds for which changes are gathered before watchers are told, 0 to 500; nil: the hub's default.
    package var gathering: Int?
    /// Nil for the backend, which has no limit of its own. Streams of older hubs, which recorded no owners, also count as the backend's.
    package var owner: StreamOwner?

    package enum Lifetime: Sendable, Equatable {
        case unlimited
        /// This many seconds after the last read or write.
        case idle(seconds: Int)
        /// Milliseconds since 1970.
        case until(Int64)
    }

    package init(contentType: String) { self.contentType = contentType.lowercased() }

    package var content: StreamContent { StreamContent(contentType: contentType) }

    /// Whether bytes of this type belong in the stream; parameters such as `charset` are ignored (RFC 9110, section 8.3.1).
    package func acceptsType(_ contentType: String) -> Bool {
        Self.mediaType(contentType.lowercased()).elementsEqual(Self.mediaType(self.contentType))
    }

    package func isAlike(_ other: StreamConfiguration) -> Bool {
        acceptsType(other.contentType) && lifetime == other.lifetime && lease == other.lease
            && gathering == other.gathering
    }

    static func mediaType(_ text: String) -> Substring.UTF8View {
        text.utf8.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") }
    }
}

/// The rules for cutting and showing a stream's bytes.
package enum StreamContent: Sendable, Equatable {
    /// UTF-8; never cut within a character.
    case text
    /// Messages, each one JSON value and a line feed; never cut within one.
    case json
    /// Shown in base64 where bytes cannot be.
    case binary

    /// - Parameter contentType: parameters such as `charset` are ignored.
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
