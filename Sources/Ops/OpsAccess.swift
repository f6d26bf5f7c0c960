/// Decides on access to the operator's page and its data.
///
/// On loopback no token is required, so any program on the machine has access. A foreign page in the operator's browser
/// must not have it: such a page reaches the port through a name of its own that resolves to 127.0.0.1 (DNS rebinding),
/// or through a WebSocket, which browsers let pages open to any host. The name in `Host` reveals the former, `Origin`
/// (RFC 6454) the latter. On other addresses a token is required, which no other page knows.
package struct OpsAccess: Sendable {
    /// Whether the port is on loopback.
    private let isLocal: Bool
    /// Nil: no token is required.
    private let token: String?

    /// - Parameter host: the address of the operator's port, as configured.
    package init(host: String, token: String?) {
        isLocal = Self.isLoopback(host)
        self.token = token
    }

    package enum Verdict: Equatable, Sendable {
        case allowed
        /// 401: access requires the token.
        case needsToken
        /// 403: a sentence with the reason.
        case forbidden(String)
    }

    /// - Parameters:
    ///   - host: the request's `Host` header.
    ///   - origin: the `Origin` header; nil unless a page sent the request.
    package func judgePage(host: String?, origin: String?, token given: String?) -> Verdict {
        if let token { return Self.areEqual(given ?? "", token) ? .allowed : .needsToken }
        guard isLocal else {
            return .forbidden(
                "ops.host is not a loopback address: set ops.token (ROOST_OPS_TOKEN) to use this page from there")
        }
        guard let host, Self.isLoopback(Self.name(ofAuthority: host)) else {
            return .forbidden("Use the address of the machine itself, such as 127.0.0.1 or localhost")
        }
        if let origin, Self.authority(ofOrigin: origin) != host.lowercased() {
            return .forbidden("This page is not one of the hub's")
        }
        return .allowed
    }

    /// Judges a request for anything on the port. Without a token, a request on loopback under another name comes from
    /// a page that misdirected the browser. A client without `Host` is no browser.
    ///
    /// - Parameter host: the request's `Host` header.
    package func judgePort(host: String?) -> Verdict {
        guard token == nil, isLocal, let host, !Self.isLoopback(Self.name(ofAuthority: host)) else { return .allowed }
        return .forbidden("Use the address of the machine itself, such as 127.0.0.1 or localhost")
    }

    /// Judges a request for the metrics, which are open on any address unless a token is set.
    package func judgeFigures(token given: String?) -> Verdict {
        guard let token else { return .allowed }
        return Self.areEqual(given ?? "", token) ? .allowed : .needsToken
    }

    /// Whether only programs on this machine can reach the port (RFC 1122, section 3.2.1.3; RFC 6761, section 6.3).
    package static func isLoopback(_ host: String) -> Bool {
        let host = host.lowercased()
        if ["localhost", "::1", "[::1]"].contains(host) { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return parts.count == 4 && !parts.contains(nil) && parts[0] == 127
    }

    /// The host part of `127.0.0.1:4001`.
    private static func name(ofAuthority authority: String) -> String {
        if authority.hasPrefix("["), let end = authority.firstIndex(of: "]") { return String(authority[...end]) }
        return String(authority.prefix { $0 != ":" })
    }

    /// `127.0.0.1:4001` of `http://127.0.0.1:4001`; empty for anything else, `null` included.
    private static func authority(ofOrigin origin: String) -> String {
        guard let mark = origin.firstRange(of: "://") else { return "" }
        return origin[mark.upperBound...].lowercased()
    }

    /// Compares two secrets in constant time.
    private static func areEqual(_ one: String, _ other: String) -> Bool {
        let (one, other) = (Array(one.utf8), Array(other.utf8))
        guard one.count == other.count else { return false }
        return zip(one, other).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
