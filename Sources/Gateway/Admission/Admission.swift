package import HTTP
package import Hub
package import Wire

/// Decides which requests for a WebSocket are let in (wire-protocol A1), and counts those that are not. One for each loop.
package struct Admission {
    /// Who is let in.
    package struct Client {
        package let version: ProtocolVersion
        package let claims: Claims
        /// A browser opened it: only those name an origin (RFC 6455, section 4.1).
        package let isPage: Bool
        /// What its tracing calls the upgrade.
        package var trace: TraceContext?
        /// Nil where it is not known.
        var peer: IPAddress?
        /// By which it comes; nil without TLS.
        var tunnel: TLSTunnel?
        /// What it is counted for in `ConnectionLimits`; nil where it is not. Noted with the upgrade, because what is counted
        /// may be another matter by the time that it ends.
        var countedAddress: PeerAddress?
        var countedUser: Name?
    }

    package enum Verdict {
        /// The client is counted as a connection: whoever drops it gives that back.
        case admitted(Client)
        case refused(Denial)
    }

    /// A no, with what the operator is told of it.
    package struct Denial {
        package let response: HTTPResponse
        package let reason: Reason
        /// Why, without anything that the client sent.
        package let sentence: String
        /// Nil where it is not known.
        let address: IPAddress?
        /// The limit, where it is one.
        package let limit: Refusal?
        /// What its client's tracing calls it.
        package var trace: TraceContext?
    }

    /// Why an upgrade was refused, as the metrics have it.
    package enum Reason: String, CaseIterable, Sendable {
        case path, origin, handshake, version, token, limit, draining, database
        case keyMissing = "key_missing"

        /// What the operator is told where there is no more to say.
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

        /// The address is one step nearer to being held back.
        var countsAgainst: Bool { self == .token || self == .keyMissing }
    }

    private let verifier: any TokenVerifier
    private let connections: ConnectionLimits
    private let failing: FailingAddresses
    private var origins: AllowedOrigins
    private var proxies: TrustedProxies
    /// No socket is let in any more.
    private(set) var isDraining = false
    /// Row changes cannot be served, and so no socket is let in: a client's library comes back from a connection that is refused, and
    /// not always from a join.
    private var lacksFeed: Bool
    private let requiresFeed: Bool
    package private(set) var refused: [Reason: Int] = [:]

    /// Where WebSockets of clients are served.
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

    /// Counts a connection that was accepted on the clients' port.
    ///
    /// - Returns: nil where it is not even to be told that there are too many.
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

    /// Takes a connection out of its address' count.
    package func depart(_ arrival: inout Arrival) {
        if let counted = arrival.counted.take() { connections.depart(counted) }
    }

    /// A request has come by a connection. By a proxy's it is counted for whom the proxy speaks, until `requestEnds`.
    ///
    /// - Returns: the answer where its address has too many connections.
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

    /// The answer is given, or has gone out whole where it went on: a proxy uses the connection for others from here on.
    package func requestEnds(by arrival: inout Arrival) {
        guard arrival.isProxied else { return }
        depart(&arrival)
        arrival.address = nil
    }

    // MARK: Upgrades

    /// The answer to a request for a WebSocket on the clients' port.
    ///
    /// - Parameters:
    ///   - fd: the socket that it came by.
    ///   - counted: the address that the connection is counted for already; who is admitted is counted for it from here on.
    package mutating func judge(
        _ head: HTTPHead, by fd: Int32, counted: PeerAddress? = nil, at now: HubTime
    ) -> Verdict {
        let peer = Peer(of: fd, head, trusting: proxies)
        if isDraining {
            // It was accepted before the listeners were closed.
            return refuse(.unavailable(Refusal.restarting.message, retryAfter: 1), .draining, peer)
        }
        if peer.isBehindProxy, failing.keepsFailing(Name(peer.text)) {
            // Others are held back before they are heard; here it takes a header to know who it is.
            return refuse(.error(429, "Too many bad tokens from this address; try again in a minute"), .limit, peer)
        }
        guard Self.paths.contains(head.path) else {
            return refuse(.error(404, "No WebSocket is served here; connect to /realtime/v1/websocket"), .path, peer)
        }
        guard origins.admit(head) else { return refuse(AllowedOrigins.refusal, .origin, peer) }
        if let refusal = WebSocketHandshake.refusal(of: head) { return refuse(refusal, .handshake, peer) }
        guard let version = ProtocolVersion(vsn: head.query("vsn")) else {
            // Without a word, as the original has it.
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

    /// Counts whoever is to have an answer that goes on as a connection.
    ///
    /// - Parameters:
    ///   - fd: the socket that it asks by.
    ///   - forwarded: the request's `x-forwarded-for`.
    ///   - isCounted: its connection is counted for its address already, and goes on to be.
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

    /// Of whoever sends a request; nil where it is not known.
    ///
    /// - Parameters: as `count` takes them.
    func address(by fd: Int32, _ forwarded: String?) -> PeerAddress? {
        fullAddress(by: fd, forwarded).map { PeerAddress($0) }
    }

    /// The same, as the log has it.
    func fullAddress(by fd: Int32, _ forwarded: String?) -> IPAddress? {
        Peer(of: fd, forwarded: forwarded, trusting: proxies).address
    }

    /// Counts a client against whom nothing speaks but, perhaps, how many there are.
    ///
    /// - Parameter address: nil where it is not to be counted, or is already.
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

    /// An upgrade that was admitted and never completed is not counted any more.
    package func abandon(_ client: Client) {
        connections.leave(client.countedAddress)
        if let user = client.countedUser { connections.releaseSocket(user) }
    }

    // MARK: Tokens

    /// What is wrong with the token of a request that asks for no upgrade: whoever opens a socket's address in a browser
    /// or by curl wants to know. Nil where there is none, or it is good.
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

    /// For the operator, who may know how late a token is, and is told what a wrong secret looks like.
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
