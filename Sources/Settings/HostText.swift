import Glibc

/// Names and addresses of machines, as far as a look at them tells whether they can be any.
enum HostText {
    /// A host name (RFC 1123, section 2.1), an IPv4 address, or an IPv6 address with or without a zone (RFC 4007).
    static func isHost(_ text: String) -> Bool {
        if text.contains(":") { return isAddress(String(text.prefix { $0 != "%" }), AF_INET6) }
        if text.allSatisfy({ $0.isNumber || $0 == "." }) { return isAddress(text, AF_INET) }
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        return text.utf8.count <= 253 && labels.allSatisfy(isLabel)
    }

    /// `http://` or `https://`, a host, and a port if any that can be one.
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

    /// Nothing, or a colon and a port.
    private static func isPort(_ text: Substring) -> Bool {
        guard let colon = text.first else { return true }
        guard colon == ":", let port = Int(text.dropFirst()) else { return false }
        return (1...65_535).contains(port)
    }

    /// Underscores are not of the standard, and yet common in names that containers have.
    private static func isLabel(_ label: Substring) -> Bool {
        (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
            && label.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == "_") }
    }

    private static func isAddress(_ text: String, _ family: Int32) -> Bool {
        var address = in6_addr()
        return inet_pton(family, text, &address) == 1
    }
}
