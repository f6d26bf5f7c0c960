package import Gateway

/// The operator's port: liveness, readiness, metrics.
package struct OpsPages: HTTPHandler {
    private let health: Health
    private let figures: @Sendable () -> [Figure]

    package init(health: Health, figures: @escaping @Sendable () -> [Figure]) {
        self.health = health
        self.figures = figures
    }

    package func respond(to request: HTTPRequest, later reply: HTTPReply) -> HTTPAnswer? {
        guard request.method == .get || request.method == .head else {
            return .now(.text(405, "Use GET\n"))
        }
        switch request.path {
        case "/metrics":
            var response = HTTPResponse.text(200, Exposition.text(of: figures()))
            response.contentType = "text/plain; version=0.0.4; charset=utf-8"
            return .now(response)
        case "/":
            return .now(.text(200, "Roost: /livez, /readyz, /healthz, /metrics\n"))
        default:
            return HealthPages(health: health).respond(to: request).map { .now($0) }
        }
    }
}
