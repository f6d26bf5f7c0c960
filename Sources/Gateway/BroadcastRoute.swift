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
        var path = path
        guard let route = path.withUTF8({ Self.route($0) }) else { return nil }
        self = route
    }

    private static func route(_ path: UnsafeBufferPointer<UInt8>) -> BroadcastRoute? {
        for prefix in prefixes where begins(path[...], with: prefix) {
            let rest = path[prefix.utf8CodeUnitCount...]
            guard let first = rest.first else { return .list }
            guard first == UInt8(ascii: "/") else { return nil }
            // Without that slash: it may be the marker's, where there is no topic.
            guard let (topic, event) = split(rest.dropFirst()), !topic.isEmpty, !event.isEmpty else { return nil }
            return .message(
                topic: String(decoding: topic, as: UTF8.self), event: String(decoding: event, as: UTF8.self))
        }
        return nil
    }

    private static func begins(_ bytes: Slice<UnsafeBufferPointer<UInt8>>, with text: StaticString) -> Bool {
        bytes.count >= text.utf8CodeUnitCount
            && text.withUTF8Buffer { text in
                for at in 0..<text.count where bytes[bytes.startIndex + at] != text[at] { return false }
                return true
            }
    }

    /// At the last marker.
    private static func split(
        _ names: Slice<UnsafeBufferPointer<UInt8>>
    ) -> (topic: Slice<UnsafeBufferPointer<UInt8>>, event: Slice<UnsafeBufferPointer<UInt8>>)? {
        for slash in names.indices.reversed()
        where names[slash] == UInt8(ascii: "/") && begins(names[slash...], with: marker) {
            return (names[..<slash], names[(slash + marker.utf8CodeUnitCount)...])
        }
        return nil
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
        // As nearly all write it.
        guard text != "application/json" else {
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
