package import Gateway

/// The operator's port: liveness, readiness, metrics, and the page that shows the hub at work.
package struct OpsPages: HTTPHandler {
    private let health: Health
    private let access: OpsAccess
    private let figures: @Sendable () -> [Figure]

    package init(health: Health, access: OpsAccess, figures: @escaping @Sendable () -> [Figure]) {
        self.health = health
        self.access = access
        self.figures = figures
    }

    package func respond(to request: HTTPRequest, later reply: HTTPReply) -> HTTPAnswer? {
        guard request.method == .get || request.method == .head else {
            return .now(.text(405, "Use GET\n"))
        }
        switch request.path {
        case "/metrics":
            if let refusal = access.judgeFigures(token: request.token).refusal { return .now(refusal) }
            var response = HTTPResponse.text(200, Exposition.text(of: figures()))
            response.contentType = "text/plain; version=0.0.4; charset=utf-8"
            return .now(response)
        case "/ops/access":
            // For the page: a browser does not tell it why a WebSocket was refused.
            return .now(access.judge(request).refusal ?? .text(200, "ok\n"))
        default:
            let page = DashboardPage.response(at: request.path) ?? HealthPages(health: health).respond(to: request)
            return page.map { .now($0) }
        }
    }
}

extension OpsAccess {
    func judge(_ request: HTTPRequest) -> Verdict {
        judge(host: request.host, origin: request.origin, token: request.token)
    }
}

extension OpsAccess.Verdict {
    /// Nil where it is allowed.
    var refusal: HTTPResponse? {
        switch self {
        case .allowed: return nil
        case .needsToken:
            // RFC 6750, section 3.
            var response = HTTPResponse.text(401, "Give the token (ops.token) as `Authorization: Bearer TOKEN`\n")
            response.headers = [("www-authenticate", "Bearer")]
            return response
        case .forbidden(let sentence): return .text(403, sentence + "\n")
        }
    }
}
