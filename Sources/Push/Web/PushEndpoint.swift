import Hub
package import Wire

/// The URL that a browser's messages are posted to: named by the browser, and so possibly by anyone.
///
/// Invariants
///   - Only https, to a DNS name, on port 443, without user and password; other ports and addresses only in the operator's own
///     networks. So a message leads to a push service, or to nothing.
///   - Neither text contains anything that could end a header and begin another.
///   - It is written as browsers write URLs (WHATWG URL), so that a service has one origin.
package struct PushEndpoint: Sendable, Equatable {
    /// `https://HOST`, or `https://HOST:PORT` for a port other than 443 (RFC 6454, section 6.2).
    package let origin: Name
    /// Path and query.
    let path: String

    /// The maximum length of the URL in bytes: those in use have fewer than 600.
    package static let longest = PushToken.longest

    /// - Parameter rules: the operator's own networks.
    /// - Throws: `EndpointError`, one sentence.
    package init(_ url: String, under rules: EndpointRules) throws(EndpointError) {
        guard url.utf8.count <= Self.longest else { throw .tooLong }
        guard url.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\\") }) else { throw .characters }
        guard url.hasPrefix("https://") else { throw .scheme }
        let rest = url.dropFirst(8)
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let path = rest[authority.endIndex...]
        guard !authority.contains("@") else { throw .userInfo }
        guard path.hasPrefix("/"), path.count > 1, !path.contains("#") else { throw .path }
        let (host, port) = try Self.parts(authority)
        try Self.check(host, port, rules)
        origin = Name(port == 443 ? "https://\(host)" : "https://\(host):\(port)")
        self.path = String(path)
    }

    private static func parts(_ authority: Substring) throws(EndpointError) -> (host: String, port: Int) {
        let end = authority.hasPrefix("[") ? authority.firstIndex(of: "]").map { authority.index(after: $0) } : nil
        let host = authority[..<(end ?? authority.firstIndex(of: ":") ?? authority.endIndex)]
        let rest = authority[host.endIndex...]
        guard !rest.isEmpty else { return (String(host), 443) }
        let digits = rest.dropFirst()
        guard rest.hasPrefix(":"), (1...5).contains(digits.count), digits.allSatisfy({ ("0"..."9").contains($0) }),
            let port = Int(digits), (1...65_535).contains(port), port != 443, digits.first != "0"
        else { throw .port }
        return (String(host), port)
    }

    private static func check(_ host: String, _ port: Int, _ rules: EndpointRules) throws(EndpointError) {
        let literal = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        if let address = NetworkAddress(literal), host.hasPrefix("[") == (address.bytes.count == 16) {
            guard rules.isOwn(address) else { throw .address(address.problem ?? "an address and no name") }
            return
        }
        guard !host.hasPrefix("["), isName(host, mayBeLocal: rules.hasOwnNetworks) else { throw .host }
        guard port == 443 || rules.hasOwnNetworks else { throw .port }
    }

    /// Whether a host is a DNS name with at least two labels, the last of which has a letter and is not a number: anything that libc
    /// would take for an address in one of its other spellings (`127.1`, `0x7f.1`, `2130706433`) is not a name (WHATWG URL, section
    /// 3.5).
    ///
    /// - Parameter mayBeLocal: whether names count that only the operator's own network knows.
    private static func isName(_ host: String, mayBeLocal: Bool) -> Bool {
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        guard host.utf8.count <= 253, let last = labels.last, last.first?.isNumber == false,
            mayBeLocal || labels.count > 1 && !["localhost", "local", "internal"].contains(last)
        else { return false }
        return labels.allSatisfy { label in
            (1...63).contains(label.count) && label.first != "-" && label.last != "-"
                && label.allSatisfy { ("a"..."z").contains($0) || ("0"..."9").contains($0) || $0 == "-" || $0 == "_" }
        }
    }
}

/// The addresses that messages to browsers may be posted to.
package struct EndpointRules: Sendable, Equatable {
    /// The operator's own networks with push services in them, on any port. All other addresses that are not public are out of reach.
    package let networks: [NetworkRange]

    package init(networks: [NetworkRange] = []) { self.networks = networks }

    var hasOwnNetworks: Bool { !networks.isEmpty }

    func isOwn(_ address: NetworkAddress) -> Bool { networks.contains { $0.contains(address) } }

    /// Whether the host of an origin is an address in these networks, and not a name.
    func isOwn(host: Substring) -> Bool {
        guard hasOwnNetworks else { return false }
        let text = host.hasPrefix("[") ? host.dropFirst().prefix { $0 != "]" } : host.prefix { $0 != ":" }
        return NetworkAddress(String(text)).map { isOwn($0) } ?? false
    }

    /// The reason why no connection is made to an address; nil if one may be. A name is checked here by the very address that is
    /// connected to, so that it cannot lead elsewhere than it did at the first check.
    package func problem(withConnectingTo socket: UnsafeRawBufferPointer) -> String? {
        guard let (address, port) = NetworkAddress.of(socket) else { return "no address of IP" }
        if isOwn(address) { return nil }
        return address.problem ?? (port == 443 ? nil : "port \(port)")
    }
}

/// The reason why a URL is not an endpoint of a push service.
package enum EndpointError: Error, Equatable {
    case tooLong, characters, scheme, userInfo, path, port, host
    case address(String)
}

extension EndpointError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .tooLong: "The endpoint has more than \(PushEndpoint.longest) bytes; no push service has such long ones."
        case .characters: "The endpoint has characters that stand in no URL."
        case .scheme: "The endpoint does not begin with https://, so it is no push service's."
        case .userInfo: "The endpoint has a user or a password before its host; those of push services have none."
        case .path:
            "The endpoint has no path, or has a fragment; a push service says which browser it is for in the path."
        case .port:
            "The endpoint has another port than 443; the hub posts to those only in the networks of web_push.networks."
        case .host: "The endpoint's host is no name of the internet's, such as push.example.com."
        case .address(let words):
            "The endpoint's host is \(words); the hub posts there only in the networks of web_push.networks."
        }
    }
}
