import HTTP

/// Where a request goes that broadcasts, by its path: bytes, because the library's searches in strings take 5 µs for it.
enum BroadcastRoute: Equatable {
    /// Several messages, which the body names.
    case list
    /// One, whose payload is the body. A topic may have slashes of its own.
    case message(topic: String, event: String)

    private static let prefixes: [StaticString] = ["/realtime/v1/api/broadcast", "/api/broadcast"]
    private static let marker: StaticString = "/events/"

    /// Nil where the path is none of these.
    init?(path: String) {
        for prefix in Self.prefixes {
            guard let rest = Self.rest(of: path.utf8, behind: prefix) else { continue }
            if rest.isEmpty {
                self = .list
                return
            }
            guard rest.first == UInt8(ascii: "/") else { return nil }
            // Without that slash: it may be the marker's, where there is no topic.
            let names = rest.dropFirst()
            guard let (topic, event) = Self.split(names), !topic.isEmpty, !event.isEmpty else { return nil }
            self = .message(topic: String(Substring(topic)), event: String(Substring(event)))
            return
        }
        return nil
    }

    private static func rest(of path: String.UTF8View, behind prefix: StaticString) -> Substring.UTF8View? {
        prefix.withUTF8Buffer { prefix in
            guard path.starts(with: prefix) else { return nil }
            return path.dropFirst(prefix.count)
        }
    }

    /// At the last marker.
    private static func split(
        _ names: Substring.UTF8View
    ) -> (topic: Substring.UTF8View, event: Substring.UTF8View)? {
        marker.withUTF8Buffer { marker in
            var slash = names.endIndex
            while let found = names[..<slash].lastIndex(of: UInt8(ascii: "/")) {
                slash = found
                guard names[found...].starts(with: marker) else { continue }
                return (names[..<found], names[found...].dropFirst(marker.count))
            }
            return nil
        }
    }
}

/// What the body of a broadcast may be.
enum MediaType {
    case json, octets

    /// JSON where the request says nothing; nil for what is not taken. Names are in whatever case, and parameters do not
    /// count (RFC 9110, section 8.3.1).
    init?(of request: HTTPRequest) {
        guard let text = request.contentType else {
            self = .json
            return
        }
        let name = text.utf8.prefix { $0 != UInt8(ascii: ";") }
        if Self.isEqual(name, "application/json") {
            self = .json
        } else if Self.isEqual(name, "application/octet-stream") {
            self = .octets
        } else {
            return nil
        }
    }

    private static func isEqual(_ name: Substring.UTF8View, _ type: StaticString) -> Bool {
        type.withUTF8Buffer { type in
            name.elementsEqual(type) { byte, other in
                byte == other || byte &- UInt8(ascii: "A") < 26 && byte | 0x20 == other
            }
        }
    }
}
