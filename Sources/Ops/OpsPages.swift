import COpsFiles
package import HTTP

/// The operator's port: liveness, readiness, metrics, and the live page.
package struct OpsPages: HTTPHandler {
    private let health: Health
    private let access: OpsAccess
    private let figures: @Sendable () -> [Figure]
    private let barrier: any Barrier

    /// - Parameter figures: the figures of `/metrics`.
    package init(
        health: Health, access: OpsAccess, figures: @escaping @Sendable () -> [Figure], barrier: any Barrier
    ) {
        self.health = health
        self.access = access
        self.figures = figures
        self.barrier = barrier
    }

    /// No page takes a body, so all but the one that waits are answered from the request's head.
    package func judge(_ head: HTTPRequest) -> HTTPVerdict {
        if let refusal = access.judgePort(host: head.host).refusal { return .answered(refusal) }
        if head.path == Self.barrierPath {
            if let refusal = access.judgePage(head).refusal { return .answered(refusal) }
            return head.method == .post ? .admittedEvenIfEmpty : .answered(.postOnly)
        }
        guard head.method == .get || head.method == .head else { return .answered(.getOnly) }
        switch head.path {
        case "/metrics":
            if let refusal = access.judgeFigures(token: head.token).refusal { return .answered(refusal) }
            var response = HTTPResponse.text(200, Exposition.text(of: figures()))
            response.contentType = "text/plain; version=0.0.4; charset=utf-8"
            return .answered(response)
        case "/ops/access":
            // For the page: browsers do not tell it why a WebSocket was refused.
            return .answered(access.judgePage(head).refusal ?? .text(200, "ok\n"))
        case Dashboard.path:
            var response = HTTPResponse.text(426, "This is the address of the live page's WebSocket\n")
            response.headers = [("upgrade", "websocket")]
            return .answered(response)
        default:
            let page = DashboardPage.response(at: head.path) ?? HealthPages(health: health).respond(to: head)
            return page.map { .answered($0) } ?? .notServed
        }
    }

    package func respond(to request: HTTPRequest, later reply: HTTPReply) -> HTTPAnswer? {
        guard request.path == Self.barrierPath else { return nil }
        let given = request.query["seconds"]
        guard let seconds = given.map({ Int($0) }) ?? 10, (1...60).contains(seconds) else {
            return .now(.text(400, "Give seconds as a whole number from 1 to 60\n"))
        }
        barrier.awaitSettling(within: .seconds(seconds)) { problem in
            reply.send(problem.map { .text(503, "not settled: \($0)\n") } ?? .text(200, "ok\n"))
        }
        return .later
    }

    private static let barrierPath = "/settled"
}

/// A barrier for tests: everything that reached the hub before the call is done and visible afterwards, to sockets, in
/// streams and in the metrics.
package protocol Barrier: Sendable {
    /// - Parameters:
    ///   - patience: anything unfinished by then is a problem.
    ///   - done: called once, from any thread, with nil or the unfinished work, without a full stop.
    func awaitSettling(within patience: Duration, then done: @escaping @Sendable (_ problem: String?) -> Void)
}

extension HTTPResponse {
    fileprivate static var postOnly: HTTPResponse {
        var response = HTTPResponse.text(405, "Use POST\n")
        response.headers = [("allow", "POST")]
        return response
    }
}

extension OpsAccess {
    func judgePage(_ request: HTTPRequest) -> Verdict {
        judgePage(host: request.host, origin: request.origin, token: request.token)
    }
}

extension OpsAccess.Verdict {
    /// Nil if access is allowed.
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

/// The operator's page as served to a browser. It contains no secrets, so it needs no token; its data does.
struct DashboardPage {
    private static let types = [
        "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
        "svg": "image/svg+xml",
    ]
    private static let headers: [(name: String, value: String)] = [
        ("cache-control", "no-cache"), ("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        (
            "content-security-policy",
            "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
        ),
    ]

    /// Nil if there is no such file.
    static func response(at path: String) -> HTTPResponse? {
        let name = path == "/" ? "dashboard.html" : String(path.dropFirst())
        guard let bytes = OpsFiles.all[name], let type = types[String(name.split(separator: ".").last ?? "")] else {
            return nil
        }
        return HTTPResponse(status: 200, contentType: type, headers: headers, body: bytes)
    }
}

/// The page's files, embedded in the binary, by name.
enum OpsFiles {
    static let all: [String: [UInt8]] = {
        var count = 0
        let files = UnsafeBufferPointer(start: roost_ops_files(&count), count: count)
        return Dictionary(
            uniqueKeysWithValues: files.map { file in
                (String(cString: file.name), Array(UnsafeBufferPointer(start: file.bytes, count: file.length)))
            })
    }()
}
