import HTTP
import Hub
import Wire

/// Decides which upgrades become WebSockets (wire-protocol A1).
struct Door {
    let verifier: any TokenVerifier
    var origins: AllowedOrigins

    struct Admission {
        let version: ProtocolVersion
        let claims: Claims
        /// A browser opened it: only those name an origin (RFC 6455, section 4.1).
        let isPage: Bool
        /// Nil where it is not known.
        var peer: IPAddress?
        /// The address that it was counted for, if it was.
        var address: PeerAddress?
        /// The same of its user.
        var countedUser: String?
    }

    static let paths = ["/socket/websocket", "/realtime/v1/websocket"]

    /// The answer to an upgrade request.
    enum Verdict {
        case admitted(Admission)
        case refused(HTTPResponse, Reason)
    }

    /// Why an upgrade was refused, as the metrics have it.
    enum Reason: String, CaseIterable, Sendable {
        case path, origin, handshake, version, token, limit, draining
        case keyMissing = "key_missing"

        /// The address is one step nearer to being held back.
        var countsAgainst: Bool { self == .token || self == .keyMissing }
    }

    func judge(_ head: some RequestHead, at now: HubTime) -> Verdict {
        guard Self.paths.contains(head.path) else {
            return .refused(
                .error(404, "No WebSocket is served here; connect to /realtime/v1/websocket"), .path)
        }
        guard origins.isEmpty || origins.allow(head.field("origin")) else {
            return .refused(
                .error(403, "Pages of this origin are not let in; http.origins names those that are"), .origin)
        }
        if let refusal = WebSocketHandshake.refusal(of: head) { return .refused(refusal, .handshake) }
        guard let version = ProtocolVersion(vsn: head.query("vsn")) else {
            // Without a word, as the original has it.
            return .refused(HTTPResponse(status: 403), .version)
        }
        guard let candidates = TokenSource(head: head).ofUpgrade else {
            return .refused(.error(401, Refusal.apiKeyMissing.message), .keyMissing)
        }
        do {
            let isPage = head.field("origin") != nil
            return .admitted(
                Admission(version: version, claims: try claims(candidates, at: now), isPage: isPage))
        } catch {
            return .refused(Self.answer(to: error), .token)
        }
    }

    /// What is wrong with the token of a request that asks for no upgrade: whoever opens a socket's address in a browser
    /// or by curl wants to know. Nil where there is none, or it is good.
    func tokenRefusal(of head: some RequestHead, at now: HubTime) -> HTTPResponse? {
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

    private func claims(_ candidates: UpgradeTokens, at now: HubTime) throws(Refusal) -> Claims {
        do throws(Refusal) {
            return try verifier.verify(candidates.token, at: now)
        } catch {
            guard case .tokenExpired = error, let other = candidates.insteadOfExpired else { throw error }
            return try verifier.verify(other, at: now)
        }
    }
}
