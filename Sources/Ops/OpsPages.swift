package import HTTP

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

    /// No page takes a body, so all are answered by their heads.
    package func judge(_ head: HTTPRequest) -> HTTPVerdict {
        if let refusal = access.judge(host: head.host).refusal { return .answered(refusal) }
        guard head.method == .get || head.method == .head else { return .answered(.getOnly) }
        switch head.path {
        case "/metrics":
            if let refusal = access.judgeFigures(token: head.token).refusal { return .answered(refusal) }
            var response = HTTPResponse.text(200, Exposition.text(of: figures()))
            response.contentType = "text/plain; version=0.0.4; charset=utf-8"
            return .answered(response)
        case "/ops/access":
            // For the page: a browser does not tell it why a WebSocket was refused.
            return .answered(access.judge(head).refusal ?? .text(200, "ok\n"))
        case Dashboard.path:
            var response = HTTPResponse.text(426, "This is the address of the live page's WebSocket\n")
            response.headers = [("upgrade", "websocket")]
            return .answered(response)
        default:
            let page = DashboardPage.response(at: head.path) ?? HealthPages(health: health).respond(to: head)
            return page.map { .answered($0) } ?? .notServed
        }
    }

    package func respond(to request: HTTPRequest, later reply: HTTPReply) -> HTTPAnswer? { nil }
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
