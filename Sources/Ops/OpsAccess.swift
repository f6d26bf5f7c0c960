/// Who may see the operator's page and what feeds it.
///
/// On loopback nobody is asked who they are, so whatever runs on the machine may ask. What must not is a page of somebody
/// else's in the operator's browser: it reaches the port by a name of its own that it makes the browser resolve to
/// 127.0.0.1 (DNS rebinding), or by a WebSocket, which browsers let a page open to any host. The name in `Host` gives the
/// first away, `Origin` (RFC 6454) the second. Elsewhere a token is asked for; no page but ours knows it.
package struct OpsAccess: Sendable {
    /// Whether the port is on loopback.
    private let isLocal: Bool
    /// Nil: no token is asked for.
    private let token: String?

    /// - Parameter host: the address of the operator's port, as configured.
    package init(host: String, token: String?) {
        isLocal = Self.isLoopback(host)
        self.token = token
    }

    package enum Verdict: Equatable, Sendable {
        case allowed
        /// 401: with the token it would be allowed.
        case needsToken
        /// 403: the sentence says why.
        case forbidden(String)
    }

    /// - Parameters:
    ///   - host: the request's `Host` header.
    ///   - origin: its `Origin` header; none where it is no page's.
    package func judge(host: String?, origin: String?, token given: String?) -> Verdict {
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

    /// Judges a request for anything on the port. While no token is asked for on loopback, whoever names the port otherwise is
    /// a page that made a browser come. What sends no `Host` is no browser.
    ///
    /// - Parameter host: the request's `Host` header.
    package func judge(host: String?) -> Verdict {
        guard token == nil, isLocal, let host, !Self.isLoopback(Self.name(ofAuthority: host)) else { return .allowed }
        return .forbidden("Use the address of the machine itself, such as 127.0.0.1 or localhost")
    }

    /// Judges a request for the metrics, which are open as long as there is no token, wherever the port is.
    package func judgeFigures(token given: String?) -> Verdict {
        guard let token else { return .allowed }
        return Self.areEqual(given ?? "", token) ? .allowed : .needsToken
    }

    /// Whether nobody but the machine's own users reaches the port (RFC 1122, section 3.2.1.3; RFC 6761, section 6.3).
    package static func isLoopback(_ host: String) -> Bool {
        let host = host.lowercased()
        if ["localhost", "::1", "[::1]"].contains(host) { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return parts.count == 4 && !parts.contains(nil) && parts[0] == 127
    }

    /// `127.0.0.1:4001` without its port.
    private static func name(ofAuthority authority: String) -> String {
        if authority.hasPrefix("["), let end = authority.firstIndex(of: "]") { return String(authority[...end]) }
        return String(authority.prefix { $0 != ":" })
    }

    /// `127.0.0.1:4001` of `http://127.0.0.1:4001`; "" of anything else, `null` included.
    private static func authority(ofOrigin origin: String) -> String {
        guard let mark = origin.firstRange(of: "://") else { return "" }
        return origin[mark.upperBound...].lowercased()
    }

    /// Compares two secrets in a time that does not tell how much of a guess was right.
    private static func areEqual(_ one: String, _ other: String) -> Bool {
        let (one, other) = (Array(one.utf8), Array(other.utf8))
        guard one.count == other.count else { return false }
        return zip(one, other).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
