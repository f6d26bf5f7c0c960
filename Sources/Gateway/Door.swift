import CWebSockets
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

    static let paths: Set<String> = ["/socket/websocket", "/realtime/v1/websocket"]

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

    func judge(_ headers: HeaderReader, at now: HubTime) -> Verdict {
        guard let request = headers.request, Self.paths.contains(request.path) else {
            return .refused(
                Self.error(404, "No WebSocket is served here; connect to /realtime/v1/websocket"), .path)
        }
        guard origins.isEmpty || origins.allow(headers.header(WSI_TOKEN_ORIGIN)) else {
            return .refused(
                Self.error(403, "Pages of this origin are not let in; http.origins names those that are"), .origin)
        }
        guard headers.header(WSI_TOKEN_KEY) != nil else {
            return .refused(Self.error(400, "Sec-WebSocket-Key is missing"), .handshake)
        }
        guard headers.header(WSI_TOKEN_VERSION) == "13" else {
            var response = Self.error(426, "Sec-WebSocket-Version must be 13")
            response.headers = [("sec-websocket-version", "13")]
            return .refused(response, .handshake)
        }
        guard let version = ProtocolVersion(vsn: headers.query("vsn")) else {
            return .refused(HTTPResponse(status: 403), .version)
        }
        guard let candidates = TokenSource(headers: headers).ofUpgrade else {
            return .refused(Self.error(401, Refusal.apiKeyMissing.message), .keyMissing)
        }
        do {
            let isPage = headers.header(WSI_TOKEN_ORIGIN) != nil
            return .admitted(
                Admission(version: version, claims: try claims(candidates, at: now), isPage: isPage))
        } catch {
            // "seconds ago" would tell a stranger more than the original does here.
            if case .tokenExpired = error {
                return .refused(Self.error(401, "Token has expired"), .token)
            }
            return .refused(Self.error(401, error.message), .token)
        }
    }

    private func claims(_ candidates: TokenSource.Candidates, at now: HubTime) throws(Refusal) -> Claims {
        do throws(Refusal) {
            return try verifier.verify(candidates.token, at: now)
        } catch {
            guard case .tokenExpired = error, let other = candidates.insteadOfExpired else { throw error }
            return try verifier.verify(other, at: now)
        }
    }

    static func error(_ status: UInt32, _ text: String) -> HTTPResponse {
        .json(status, Array("{\"error\":".utf8) + JSONString.encode(text) + [UInt8(ascii: "}")])
    }
}
