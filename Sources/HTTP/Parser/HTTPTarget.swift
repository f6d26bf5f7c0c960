/// A request's target (RFC 9112, section 3.2).
struct HTTPTarget {
    /// Origin-form; see `HTTPHead.target`.
    let text: String
    let path: String
    let query: [(name: String, value: String)]
    /// The host of an absolute-form target, with the port if there is one.
    let authority: String?

    /// - Parameter bytes: visible ASCII, at least one byte.
    init(_ bytes: Span<UInt8>, method: String) throws(HTTPRefusal) {
        for at in 0..<bytes.count where bytes[at] == UInt8(ascii: "#") { throw .target }
        guard bytes[0] != UInt8(ascii: "/") else {
            try self.init(origin: bytes, authority: nil)
            return
        }
        if bytes.count == 1, bytes[0] == UInt8(ascii: "*"), method == "OPTIONS" {
            self.init(special: "*", authority: nil)
        } else if method == "CONNECT" {
            guard HTTPAuthority.isValid(bytes, needsPort: true) else { throw .target }
            self.init(special: bytes.text(0..<bytes.count), authority: nil)
        } else {
            try self.init(absolute: bytes, method: method)
        }
    }

    private init(special text: String, authority: String?) {
        self.text = text
        path = "/"
        query = []
        self.authority = authority
    }

    /// The form that is sent to proxies; servers must accept it, too (RFC 9112, section 3.2.2).
    private init(absolute bytes: Span<UInt8>, method: String) throws(HTTPRefusal) {
        let start: Int
        if bytes.count > 7, bytes.isEqual(0..<7, ignoringCase: "http://") {
            start = 7
        } else if bytes.count > 8, bytes.isEqual(0..<8, ignoringCase: "https://") {
            start = 8
        } else {
            throw .target
        }
        var end = start
        while end < bytes.count, bytes[end] != UInt8(ascii: "/"), bytes[end] != UInt8(ascii: "?") { end += 1 }
        // Userinfo is not allowed, and is treated as an error, as RFC 9110, section 4.2.4, recommends.
        guard HTTPAuthority.isValid(bytes.extracting(start..<end), needsPort: false) else { throw .target }
        let authority = bytes.lowercasedText(start..<end)
        if end == bytes.count, method == "OPTIONS" {
            self.init(special: "*", authority: authority)
        } else if end < bytes.count, bytes[end] == UInt8(ascii: "/") {
            try self.init(origin: bytes.extracting(end..<bytes.count), authority: authority)
        } else {
            let origin = [UInt8(ascii: "/")] + Array(bytes.text(end..<bytes.count).utf8)
            try self.init(origin: origin.span, authority: authority)
        }
    }

    /// - Parameter bytes: begins with a slash.
    private init(origin bytes: Span<UInt8>, authority: String?) throws(HTTPRefusal) {
        var end = 0
        while end < bytes.count, bytes[end] != UInt8(ascii: "?") { end += 1 }
        text = bytes.text(0..<bytes.count)
        path =
            end == bytes.count && Self.isPlain(bytes)
            ? text : try Self.decoded(bytes.extracting(0..<end), plusIsSpace: false)
        query = end < bytes.count ? try Self.pairs(bytes.extracting((end + 1)..<bytes.count)) : []
        self.authority = authority
    }

    /// Parses names and values in the encoding of forms.
    private static func pairs(_ bytes: Span<UInt8>) throws(HTTPRefusal) -> [(name: String, value: String)] {
        var pairs: [(name: String, value: String)] = []
        var start = 0
        while start < bytes.count {
            var end = start
            var equals: Int?
            while end < bytes.count, bytes[end] != UInt8(ascii: "&") {
                if equals == nil, bytes[end] == UInt8(ascii: "=") { equals = end }
                end += 1
            }
            if end > start {
                let name = try decoded(bytes.extracting(start..<(equals ?? end)), plusIsSpace: true)
                let value = try equals.map { equals throws(HTTPRefusal) in
                    try decoded(bytes.extracting((equals + 1)..<end), plusIsSpace: true)
                }
                pairs.append((name, value ?? ""))
            }
            start = end + 1
        }
        return pairs
    }

    /// Whether the text needs no decoding.
    private static func isPlain(_ bytes: Span<UInt8>) -> Bool {
        for at in 0..<bytes.count where bytes[at] == UInt8(ascii: "%") || bytes[at] == UInt8(ascii: "+") {
            return false
        }
        return true
    }

    private static func decoded(_ bytes: Span<UInt8>, plusIsSpace: Bool) throws(HTTPRefusal) -> String {
        guard !isPlain(bytes) else { return bytes.text(0..<bytes.count) }
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count)
        var at = 0
        while at < bytes.count {
            switch bytes[at] {
            case UInt8(ascii: "%"):
                guard at + 2 < bytes.count, let high = HTTPByte.hexValue(bytes[at + 1]),
                    let low = HTTPByte.hexValue(bytes[at + 2]), high | low != 0
                else { throw .escape }
                out.append(high << 4 | low)
                at += 3
            case UInt8(ascii: "+") where plusIsSpace:
                out.append(HTTPByte.space)
                at += 1
            default:
                out.append(bytes[at])
                at += 1
            }
        }
        guard let text = String(validating: out, as: UTF8.self) else { throw .escape }
        return text
    }
}

/// The host and port of a target or of the Host header (RFC 3986, section 3.2).
enum HTTPAuthority {
    /// Stricter than the RFC, which allows characters in host names that no real name or address has.
    static func isValid(_ bytes: Span<UInt8>, needsPort: Bool) -> Bool {
        guard bytes.count > 0 else { return false }
        var at = 0
        if bytes[0] == UInt8(ascii: "[") {
            at = 1
            while at < bytes.count, isAddress(bytes[at]) { at += 1 }
            guard at >= 3, at < bytes.count, bytes[at] == UInt8(ascii: "]") else { return false }
            at += 1
        } else {
            while at < bytes.count, isName(bytes[at]) { at += 1 }
            guard at > 0 else { return false }
        }
        guard at < bytes.count else { return !needsPort }
        guard bytes[at] == UInt8(ascii: ":"), bytes.count - at <= 6 else { return false }
        for digit in (at + 1)..<bytes.count where !HTTPByte.isDigit(bytes[digit]) { return false }
        return !needsPort || at + 1 < bytes.count
    }

    /// Bytes of an IPv6 address.
    private static func isAddress(_ byte: UInt8) -> Bool {
        HTTPByte.hexValue(byte) != nil || byte == UInt8(ascii: ":") || byte == UInt8(ascii: ".")
    }

    /// `unreserved` of RFC 3986, section 2.3.
    private static func isName(_ byte: UInt8) -> Bool {
        HTTPByte.isLetter(byte) || HTTPByte.isDigit(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
            || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "~")
    }
}
