package import HTTP
package import Hub
package import Wire

/// Decides which requests for a WebSocket are admitted (wire-protocol A1), and counts the refused ones. Each loop has
/// one.
package struct Admission {
    /// An admitted client.
    package struct Client {
        package let version: ProtocolVersion
        package let claims: Claims
        /// True if a browser opened it: only browsers send an origin (RFC 6455, section 4.1).
        package let isPage: Bool
        /// The trace context of the upgrade.
        package var trace: TraceContext?
        /// Nil if the address is unknown.
        var peer: IPAddress?
        /// The connection's tunnel; nil without TLS.
        var tunnel: TLSTunnel?
        /// The address and user that it counts for in `ConnectionLimits`; nil if it does not. Stored with the upgrade,
        /// because the limits may have changed by the time it ends.
        var countedAddress: PeerAddress?
        var countedUser: Name?
    }

    package enum Verdict {
        /// The client counts as a connection; code that drops the client must undo that.
        case admitted(Client)
        case refused(Denial)
    }

    /// A refusal, with details for the operator.
    package struct Denial {
        package let response: HTTPResponse
        package let reason: Reason
        /// The reason, without anything that the client sent.
        package let sentence: String
        /// Nil if the address is unknown.
        let address: IPAddress?
        /// The limit, if one was exceeded.
        package let limit: Refusal?
        /// The client's trace context.
        package var trace: TraceContext?
    }

    /// The reason for refusing an upgrade, as in the metrics.
    package enum Reason: String, CaseIterable, Sendable {
        case path, origin, handshake, version, token, limit, draining, database
        case keyMissing = "key_missing"

        /// The sentence for the operator if there is nothing more specific.
        var sentence: String {
            switch self {
            case .path: "No WebSocket is served at that path"
            case .origin: "http.origins does not name the origin of the page"
            case .handshake:
                "The opening handshake is incomplete; a proxy in between has to pass on Upgrade and Connection"
            case .version: "The protocol's version (vsn) is not supported"
            case .token: "The token is not valid"
            case .keyMissing: "There is no token"
            case .limit: "Too many bad tokens came from this address"
            case .draining: "The hub restarts"
            case .database: "Row changes cannot be served now, and feed.required is true"
            }
        }

        /// Whether the refusal counts towards holding back the address.
        var countsAgainst: Bool { self == .token || self == .keyMissing }
    }

    private let verifier: any TokenVerifier
    private let connections: ConnectionLimits
    private let failing: FailingAddresses
    private var origins: AllowedOrigins
    private var proxies: TrustedProxies
    /// True once no more sockets are admitted.
    private(set) var isDraining = false
    /// True while row changes cannot be served, so that no socket is admitted: a client library retries a refused
    /// connection, but not always a join.
    private var lacksFeed: Bool
    private let requiresFeed: Bool
    package private(set) var refused: [Reason: Int] = [:]

    /// The paths of clients' WebSockets.
    static let paths = ["/socket/websocket", "/realtime/v1/websocket"]

    package init(
        _ rules: GatewayRules, verifier: any TokenVerifier, connections: ConnectionLimits, failing: FailingAddresses,
        requiresFeed: Bool = false
    ) {
        self.requiresFeed = requiresFeed
        lacksFeed = requiresFeed
        self.verifier = verifier
        self.connections = connections
        self.failing = failing
        origins = rules.origins
        proxies = rules.trustedProxies
    }

    package mutating func adopt(_ rules: GatewayRules) {
        origins = rules.origins
        proxies = rules.trustedProxies
    }

    package mutating func drain() { isDraining = true }

    /// - Parameter isReady: whether row changes can be served.
    package mutating func feed(isReady: Bool) { lacksFeed = requiresFeed && !isReady }

    // MARK: Arrivals

    /// Counts a connection accepted on the clients' port.
    ///
    /// - Returns: nil if the connection must be closed without an explanation.
    package func arrive(by fd: Int32) -> Arrival? {
        let address = IPAddress(peerOf: fd)
        var arrival = Arrival(address: address, isProxied: !proxies.isEmpty && proxies.contains(address))
        if arrival.isProxied { arrival.address = nil }
        guard let source = arrival.source else { return arrival }
        return count(source, for: &arrival) ? arrival : nil
    }

    private func count(_ source: PeerAddress, for arrival: inout Arrival) -> Bool {
        switch connections.arrive(source) {
        case .counted: arrival.counted = source
        case .over: (arrival.counted, arrival.isOver) = (source, true)
        case .refused: return false
        case .free: break
        }
        return true
    }

    /// Removes a connection from its address's count.
    package func depart(_ arrival: inout Arrival) {
        if let counted = arrival.counted.take() { connections.depart(counted) }
    }

    /// Handles a request on a connection. Through a proxy, the connection counts for the proxy's client until
    /// `requestEnds`.
    ///
    /// - Returns: the refusal, if the address has too many connections.
    package mutating func requestBegins(_ head: HTTPHead, by arrival: inout Arrival) -> Denial? {
        if arrival.isProxied {
            depart(&arrival)
            arrival.isOver = false
            arrival.address = head.field("x-forwarded-for").flatMap { proxies.client(in: $0) }
            guard let source = arrival.source else { return nil }
            if !count(source, for: &arrival) { arrival.isOver = true }
        } else if arrival.isOver, let counted = arrival.counted, connections.fits(counted) {
            arrival.isOver = false
        }
        guard arrival.isOver else { return nil }
        depart(&arrival)
        let refusal = Refusal.over(.connectionsPerAddress, connections.perAddress)
        let peer = Peer(address: arrival.address, isBehindProxy: arrival.isProxied)
        return deny(.error(429, refusal.message), .limit, peer, refusal.message, over: refusal)
    }

    /// Called when the answer is given, or a streaming one is complete: a proxy then uses the connection for other
    /// clients.
    package func requestEnds(by arrival: inout Arrival) {
        guard arrival.isProxied else { return }
        depart(&arrival)
        arrival.address = nil
    }

    // MARK: Upgrades

    /// Judges a request for a WebSocket on the clients' port.
    ///
    /// - Parameters:
    ///   - fd: the socket that the request came by.
    ///   - counted: the address that the connection already counts for; an admitted client takes over that count.
    package mutating func judge(
        _ head: HTTPHead, by fd: Int32, counted: PeerAddress? = nil, at now: HubTime
    ) -> Verdict {
        let peer = Peer(of: fd, head, trusting: proxies)
        if isDraining {
            // Accepted before the listeners were closed.
            return refuse(.unavailable(Refusal.restarting.message, retryAfter: 1), .draining, peer)
        }
        if peer.isBehindProxy, failing.keepsFailing(Name(peer.text)) {
            // Direct clients are held back before their request is read; behind a proxy, only a header identifies the
            // client.
            return refuse(.error(429, "Too many bad tokens from this address; try again in a minute"), .limit, peer)
        }
        guard Self.paths.contains(head.path) else {
            return refuse(.error(404, "No WebSocket is served here; connect to /realtime/v1/websocket"), .path, peer)
        }
        guard origins.admit(head) else { return refuse(AllowedOrigins.refusal, .origin, peer) }
        if let refusal = WebSocketHandshake.refusal(of: head) { return refuse(refusal, .handshake, peer) }
        guard let version = ProtocolVersion(vsn: head.query("vsn")) else {
            // Without a body, as in the original.
            return refuse(HTTPResponse(status: 403), .version, peer)
        }
        guard let candidates = TokenSource(head: head).ofUpgrade else {
            return refuse(.error(401, Refusal.apiKeyMissing.message), .keyMissing, peer)
        }
        do {
            let claims = try claims(candidates, at: now)
            guard !lacksFeed else {
                return refuse(.unavailable(Refusal.databaseUnavailable.message, retryAfter: 1), .database, peer)
            }
            var client = Client(version: version, claims: claims, isPage: head.field("origin") != nil)
            client.countedAddress = counted
            client.trace = TraceContext(head)
            return count(client, peer, address: counted == nil ? addressToCount(peer) : nil)
        } catch {
            return refuse(Self.answer(to: error), .token, peer, Self.sentence(of: error))
        }
    }

    /// Counts the reader of a streaming answer as a connection.
    ///
    /// - Parameters:
    ///   - fd: the socket that the request came by.
    ///   - forwarded: the request's `x-forwarded-for`.
    ///   - isCounted: whether the connection already counts for its address, and continues to.
    mutating func count(_ claims: Claims, by fd: Int32, _ forwarded: String?, isCounted: Bool) -> Verdict {
        let peer = Peer(of: fd, forwarded: forwarded, trusting: proxies)
        if isDraining {
            return refuse(.unavailable(Refusal.restarting.message, retryAfter: 1), .draining, peer)
        }
        let client = Client(version: .v2, claims: claims, isPage: false)
        return count(client, peer, address: isCounted ? nil : addressToCount(peer))
    }

    private func addressToCount(_ peer: Peer) -> PeerAddress? {
        connections.countsAddresses ? peer.address.map { PeerAddress($0) } : nil
    }

    /// The address of a request's sender; nil if it is unknown.
    ///
    /// - Parameters: as for `count`.
    func address(by fd: Int32, _ forwarded: String?) -> PeerAddress? {
        fullAddress(by: fd, forwarded).map { PeerAddress($0) }
    }

    /// The same address, in full, for the log.
    func fullAddress(by fd: Int32, _ forwarded: String?) -> IPAddress? {
        Peer(of: fd, forwarded: forwarded, trusting: proxies).address
    }

    /// Counts a client that is admitted unless a limit is reached.
    ///
    /// - Parameter address: nil if it should not be counted, or already is.
    private mutating func count(_ client: Client, _ peer: Peer, address: PeerAddress?) -> Verdict {
        var client = client
        client.peer = peer.address
        if let address { client.countedAddress = address }
        if connections.countsUsers { client.countedUser = client.claims.subject }
        guard let refusal = connections.enter(address, client.countedUser) else { return .admitted(client) }
        guard case .over(.connections, _) = refusal else {
            return refuse(.error(429, refusal.message), .limit, peer, refusal.message, over: refusal)
        }
        return refuse(
            .unavailable(refusal.message, retryAfter: 5), .limit, peer, refusal.message, over: refusal)
    }

    private mutating func refuse(
        _ response: HTTPResponse, _ reason: Reason, _ peer: Peer, _ sentence: String? = nil, over limit: Refusal? = nil
    ) -> Verdict {
        .refused(deny(response, reason, peer, sentence, over: limit))
    }

    private mutating func deny(
        _ response: HTTPResponse, _ reason: Reason, _ peer: Peer, _ sentence: String?, over limit: Refusal?
    ) -> Denial {
        refused[reason, default: 0] += 1
        if reason.countsAgainst, let address = peer.address { failing.failed(Name(address.text)) }
        return Denial(
            response: response, reason: reason, sentence: sentence ?? reason.sentence, address: peer.address,
            limit: limit)
    }

    /// Removes an admitted upgrade that was never completed from the counts.
    package func abandon(_ client: Client) {
        connections.leave(client.countedAddress)
        if let user = client.countedUser { connections.releaseSocket(user) }
    }

    // MARK: Tokens

    /// The refusal of an invalid token in a request without an upgrade, for people who open a socket's address in a
    /// browser or with curl. Nil if there is no token, or it is valid.
    package func tokenRefusal(of head: HTTPHead, at now: HubTime) -> HTTPResponse? {
        guard let candidates = TokenSource(head: head).ofUpgrade else { return nil }
        do {
            _ = try claims(candidates, at: now)
            return nil
        } catch {
            return Self.answer(to: error)
        }
    }

    private static func answer(to refusal: Refusal) -> HTTPResponse {
        // "seconds ago" would tell a stranger more than the original does here.
        if case .tokenExpired = refusal { return .error(401, "Token has expired") }
        return .error(401, refusal.message)
    }

    /// The sentence for the operator, who may know how late a token is, and who needs to recognize a wrong secret.
    private static func sentence(of refusal: Refusal) -> String {
        switch refusal {
        case .signatureInvalid: "\(refusal.message): it was signed with a secret or key that the hub does not have"
        default: refusal.message
        }
    }

    private func claims(_ candidates: UpgradeTokens, at now: HubTime) throws(Refusal) -> Claims {
        do throws(Refusal) {
            return try verifier.verifyToken(candidates.token, at: now)
        } catch {
            guard case .tokenExpired = error, let other = candidates.insteadOfExpired else { throw error }
            return try verifier.verifyToken(other, at: now)
        }
    }
}
