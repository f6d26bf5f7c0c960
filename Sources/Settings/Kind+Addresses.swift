import Glibc

/// Checks of addresses, origins and permissions.
extension Kind {
    /// An IPv4 or IPv6 address, with or without a prefix length, or `unix`.
    static func isNetwork(_ word: String) -> Bool {
        if word == "unix" { return true }
        let parts = word.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard let bits = addressBits(parts[0]) else { return false }
        guard parts.count == 2 else { return true }
        let isNumber =
            !parts[1].isEmpty && parts[1].utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        return isNumber && Int(parts[1]).map { $0 <= bits } ?? false
    }

    private static func addressBits(_ text: String) -> Int? {
        var four = in_addr()
        var six = in6_addr()
        if inet_pton(AF_INET, text, &four) == 1 { return 32 }
        return inet_pton(AF_INET6, text, &six) == 1 ? 128 : nil
    }

    /// `SCHEME://HOST` or `SCHEME://HOST:PORT` with nothing after it (RFC 6454, section 6.2); the host may begin with
    /// `*.`. Pages without an origin of their own send `null`.
    static func isOrigin(_ word: String) -> Bool {
        if word == "null" { return true }
        let origin = #/[A-Za-z][A-Za-z0-9+.\-]*://((\*\.)?[A-Za-z0-9._\-]+|\[[0-9A-Fa-f:.]+\])(:(?<port>[0-9]{1,5}))?/#
        guard let match = word.wholeMatch(of: origin) else { return false }
        return match.output.port.map { UInt16($0) != nil } ?? true
    }

    /// Three octal digits, with or without a zero before them.
    static func isMode(_ text: String) -> Bool {
        let digits = text.count == 4 && text.hasPrefix("0") ? text.dropFirst() : text[...]
        return digits.count == 3 && digits.allSatisfy { ("0"..."7").contains($0) }
    }
}

/// Checks whether texts can be host names or addresses, without resolving them.
enum HostText {
    /// A host name (RFC 1123, section 2.1), an IPv4 address, or an IPv6 address with or without a zone (RFC 4007).
    static func isHost(_ text: String) -> Bool {
        if text.contains(":") { return isAddress(String(text.prefix { $0 != "%" }), AF_INET6) }
        if text.allSatisfy({ $0.isNumber || $0 == "." }) { return isAddress(text, AF_INET) }
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        return text.utf8.count <= 253 && labels.allSatisfy(isLabel)
    }

    /// `http://` or `https://`, a host, and an optional valid port.
    static func isWebURL(_ text: String) -> Bool {
        guard let scheme = ["https://", "http://"].first(where: text.hasPrefix),
            !text.contains(where: \.isWhitespace)
        else { return false }
        let authority = text.dropFirst(scheme.count).prefix { !"/?#".contains($0) }
        let place = authority[
            (authority.lastIndex(of: "@").map { authority.index(after: $0) } ?? authority.startIndex)...]
        if place.hasPrefix("[") {
            guard let end = place.firstIndex(of: "]") else { return false }
            return isAddress(String(place[..<end].dropFirst()), AF_INET6) && isPort(place[end...].dropFirst())
        }
        let host = place.prefix { $0 != ":" }
        return !host.isEmpty && isHost(String(host)) && isPort(place[host.endIndex...])
    }

    /// Empty, or a colon and a port.
    private static func isPort(_ text: Substring) -> Bool {
        guard let colon = text.first else { return true }
        guard colon == ":", let port = Int(text.dropFirst()) else { return false }
        return (1...65_535).contains(port)
    }

    /// The standard has no underscores, but they are common in the names of containers.
    private static func isLabel(_ label: Substring) -> Bool {
        (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
            && label.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == "_") }
    }

    private static func isAddress(_ text: String, _ family: Int32) -> Bool {
        var address = in6_addr()
        return inet_pton(family, text, &address) == 1
    }
}
