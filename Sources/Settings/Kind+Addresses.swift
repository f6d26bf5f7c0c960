import Glibc

/// Addresses, origins and permissions, as text.
extension Kind {
    /// An address of IPv4 or IPv6, with or without the length of a network's prefix, or `unix`.
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

    /// `SCHEME://HOST` or `SCHEME://HOST:PORT`, and nothing behind it (RFC 6454, section 6.2); the host may begin with
    /// `*.`. Pages without an origin of their own say `null`.
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
