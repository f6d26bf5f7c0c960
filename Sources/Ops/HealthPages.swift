import Documents
package import HTTP

/// `/livez`, `/readyz` and `/healthz`, as container orchestrators expect them.
///
/// `?verbose` lists the checks as JSON; the status is the same.
struct HealthPages {
    let health: Health

    /// Nil for any other path.
    func respond(to request: HTTPRequest) -> HTTPResponse? {
        let isVerbose = request.query["verbose"] != nil
        switch request.path {
        case "/livez": return checksPage(of: health.liveness, else: "not alive", isVerbose)
        case "/readyz": return checksPage(of: health.readiness, else: "not ready", isVerbose)
        case "/healthz": return isVerbose ? overview : summary
        default: return nil
        }
    }

    private func checksPage(of checks: [HealthCheck], else failure: String, _ isVerbose: Bool) -> HTTPResponse {
        let problem = Self.problem(of: checks)
        let status: UInt32 = problem == nil ? 200 : 503
        if isVerbose { return .json(status, Self.checksJSON(checks)) }
        if let problem { return .text(status, "\(failure): \(problem)\n") }
        let degraded = checks.lazy.filter(\.isDegraded).compactMap(\.problem).first
        return .text(status, degraded.map { "ok, degraded: \($0)\n" } ?? "ok\n")
    }

    /// A failure of this page restarts the hub, so it fails only for problems that a restart solves.
    private var summary: HTTPResponse {
        if let problem = Self.problem(of: health.liveness) { return .text(503, "not alive: \(problem)\n") }
        return .text(200, health.problem.map { "alive, not ready: \($0)\n" } ?? "ok\n")
    }

    private var overview: HTTPResponse {
        let isAlive = Self.problem(of: health.liveness) == nil
        // Readiness includes all checks of liveness.
        let checks = health.readiness
        let isReady = Self.problem(of: checks) == nil
        return .json(
            isAlive ? 200 : 503, Self.checksJSON(checks, also: [("live", .bool(isAlive)), ("ready", .bool(isReady))]))
    }

    private static func problem(of checks: [HealthCheck]) -> String? {
        checks.lazy.filter { !$0.isDegraded }.compactMap(\.problem).first
    }

    /// - Parameter facts: members before the checks.
    private static func checksJSON(_ checks: [HealthCheck], also facts: [(String, JSONDocument)] = []) -> [UInt8] {
        let items = checks.map { check -> JSONDocument in
            var members: [(String, JSONDocument)] = [
                ("name", .text(check.name)), ("ok", .bool(check.problem == nil)),
            ]
            if check.isDegraded, check.problem != nil { members.append(("degraded", .bool(true))) }
            if let problem = check.problem { members.append(("reason", .text(problem))) }
            return .object(members)
        }
        let isWell = problem(of: checks) == nil
        let page = JSONDocument.object([("ok", .bool(isWell))] + facts + [("checks", .array(items))])
        return page.bytes + [UInt8(ascii: "\n")]
    }
}

/// Health checks on the clients' port, answered as Supabase Realtime answers them.
///
/// The two pages only show that the hub is listening; readiness is shown on the operator's port. Web pages of any
/// origin may read them, as with the original.
package struct ClientHealth: HTTPHandler {
    package init() {}

    package func judge(_ head: HTTPRequest) -> HTTPVerdict {
        let response: HTTPResponse
        switch head.path {
        case "/healthcheck": response = .text(200, "ok")
        case "/api/ping", "/realtime/v1/api/ping": response = .json(200, Array(#"{"message":"Success"}"#.utf8))
        default: return .notServed
        }
        return .answered(head.method == .get || head.method == .head ? response.readableAnywhere : .getOnly)
    }

    package func respond(to request: HTTPRequest, later reply: HTTPReply) -> HTTPAnswer? { nil }
}

extension HTTPResponse {
    static var getOnly: HTTPResponse {
        var response = HTTPResponse.text(405, "Use GET\n")
        response.headers = [("allow", "GET, HEAD")]
        return response
    }
}
