import Dispatch
package import HTTP
package import Hub
package import Identity
package import Logging
import Postgres
package import Streams
import Wire

/// Serves the sample chat: its page, and its few calls. Only used by `roost demo`.
///
/// Every call is one statement under the caller's role and claims, so the policies of the sample schema decide what a user may see and
/// do. Statements run one after another on a queue of their own; the loops never wait for them.
package final class DemoAPI: HTTPHandler {
    private let verifier: JWTVerifier
    private let mint: TokenMint
    private let psql: String
    private let operatorPort: Int?
    private let clock: @Sendable () -> HubTime
    private let pages = DemoPages()
    /// Nil if no streams are kept.
    private let assistant: Assistant?
    private let queue = DispatchQueue(label: "roost.demo")
    // Unsafe in name only: used on `queue`, which is serial.
    nonisolated(unsafe) private let database: DemoDatabase

    /// - Parameters:
    ///   - psql: the command line that connects to the database, shown on the page.
    ///   - operatorPort: the port of the operator's page, which the chat page links; nil if there is none.
    ///   - streams: the service that keeps the assistant's replies.
    package init(
        conninfo: String, psql: String, operatorPort: Int?, verifier: JWTVerifier, mint: TokenMint,
        streams: (any StreamService)?, logger: Logger, clock: @escaping @Sendable () -> HubTime
    ) {
        self.verifier = verifier
        self.mint = mint
        self.psql = psql
        self.operatorPort = operatorPort
        self.clock = clock
        database = DemoDatabase(conninfo: conninfo, logger: logger)
        assistant = streams.map { Assistant(streams: $0, conninfo: conninfo, logger: logger) }
    }

    package func judge(_ head: HTTPRequest) -> HTTPVerdict {
        if head.path == "/demo" || head.path == "/" {
            return .answered(HTTPResponse(status: 302, headers: [("location", "/demo/")]))
        }
        guard head.path.hasPrefix("/demo/") else { return .notServed }
        let rest = head.path.dropFirst("/demo/".count)
        guard rest.hasPrefix("api/") else { return pages.response(for: rest).map { .answered($0) } ?? .notServed }
        // A foreign page could otherwise reach this by making its own domain resolve to loopback.
        guard Self.isLoopback(head.host) else {
            return .answered(Self.error(403, "The demo is served to this machine only"))
        }
        switch DemoCall.match(head, path: rest.dropFirst("api/".count)) {
        case .unknown: return .notServed
        case .wrongMethod(let method):
            var response = Self.error(405, "Use \(method.rawValue)")
            response.headers = [("allow", "\(method.rawValue), OPTIONS")]
            return .answered(response)
        case .call(let call):
            guard !call.isSession else { return .admitted }
            do { _ = try verifier.verifyToken(head.token ?? "", at: clock()) } catch {
                return .answered(Self.error(401, error.message))
            }
            return .admitted
        }
    }

    package func respond(to request: HTTPRequest, later reply: HTTPReply) -> HTTPAnswer? {
        let path = request.path.dropFirst("/demo/api/".count)
        guard case .call(let call) = DemoCall.match(request, path: path) else { return nil }
        return answer(request, call, reply)
    }

    private func answer(_ request: HTTPRequest, _ call: DemoCall, _ reply: HTTPReply) -> HTTPAnswer {
        guard request.body.count <= 65_536 else {
            return .now(Self.error(413, "The body may have 65536 bytes at most"))
        }
        var claims = Array("{\"role\":\"service_role\"}".utf8)
        if !call.isSession {
            do {
                claims = try verifier.verifyToken(request.token ?? "", at: clock()).json
            } catch {
                return .now(Self.error(401, error.message))
            }
        }
        let text = String(decoding: claims, as: UTF8.self)
        queue.async {
            reply.send(self.perform(call, claims: text))
        }
        return .later
    }

    private func perform(_ call: DemoCall, claims: String) -> HTTPResponse {
        do {
            let json = Array(try database.perform(call.sql, call.parameters, role: call.role, claims: claims).utf8)
            if call.isMessage { assistant?.hear(message: try JSON(parsing: json)) }
            return .json(200, call.isSession ? try session(users: json) : json)
        } catch let error as PostgresError {
            return Self.error(Self.status(of: error), error.message)
        } catch {
            return Self.error(500, "\(error)")
        }
    }

    /// `{"users":[{…,"token":…}],"psql":…,"operator_port":…}`.
    private func session(users json: [UInt8]) throws -> [UInt8] {
        let users = try JSON(parsing: json).elements
        return JSONWriter.object { session in
            session.array("users", users) { writer, user in
                writer.object { object in
                    user.forEachMember { object.writeMember($0) }
                    object.writeMember(
                        "token",
                        mint.mint(role: "authenticated", subject: user["id"]?.string, lifetime: 43_200, now: clock()))
                }
            }
            session.writeMember("psql", psql)
            if let operatorPort { session.writeMember("operator_port", operatorPort) }
        }
    }

    private static func isLoopback(_ host: String?) -> Bool {
        guard let host else { return false }
        if host.hasPrefix("[::1]") { return true }
        return ["localhost", "127.0.0.1"].contains(host.split(separator: ":").first ?? "")
    }

    private static func status(of error: PostgresError) -> UInt32 {
        guard error.kind == .server, let state = error.sqlState else { return 503 }
        switch state {
        // Postgres is shutting down, has just been shut down, or is starting up.
        case "57P01", "57P02", "57P03": return 503
        case "42501": return 403
        case "P0002": return 404
        default: return state.hasPrefix("22") || state.hasPrefix("23") ? 400 : 500
        }
    }

    private static func error(_ status: UInt32, _ text: String) -> HTTPResponse {
        .json(status, Array("{\"error\":".utf8) + JSONString.encode(text) + [UInt8(ascii: "}")])
    }
}

/// One call of the demo's API, as a statement (API.md).
struct DemoCall {
    let role: String
    let sql: String
    let parameters: [String?]
    let isSession: Bool
    /// True if it answers with a message written by a user.
    var isMessage = false

    enum Match {
        case call(DemoCall)
        /// The path has only this method.
        case wrongMethod(HTTPRequest.Method)
        case unknown
    }

    static func match(_ request: HTTPRequest, path: Substring) -> Match {
        func call(_ method: HTTPRequest.Method, _ sql: String, _ parameters: [String?] = []) -> Match {
            guard request.method == method else { return .wrongMethod(method) }
            return .call(DemoCall(role: "authenticated", sql: sql, parameters: parameters, isSession: false))
        }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        let body = String(decoding: request.body, as: UTF8.self)
        switch (parts.first, parts.count) {
        case ("session", 1):
            guard request.method == .get else { return .wrongMethod(.get) }
            return .call(
                DemoCall(role: "service_role", sql: "select demo.users()", parameters: [], isSession: true))
        case ("database", 1):
            return call(.get, "select '{\"database\":true}'::json")
        case ("conversations", 1):
            return call(.get, "select demo.conversations()")
        case ("conversations", 3) where parts[2] == "messages":
            return call(
                .get, "select demo.messages($1::uuid, $2::int, $3::bigint)",
                [String(parts[1]), request.query["limit"], request.query["before"]])
        case ("messages", 1):
            guard request.method == .post else { return .wrongMethod(.post) }
            return .call(
                DemoCall(
                    role: "authenticated", sql: "select demo.send($1::jsonb)", parameters: [body], isSession: false,
                    isMessage: true))
        case ("receipts", 1): return call(.post, "select demo.mark($1::jsonb)", [body])
        default: return .unknown
        }
    }
}

/// The demo's session with its database, opened when needed and reopened after a failure.
final class DemoDatabase {
    private let conninfo: String
    private let logger: Logger
    private var session: DatabaseSession?

    init(conninfo: String, logger: Logger) {
        self.conninfo = conninfo
        self.logger = logger
    }

    /// Runs one statement, in a transaction of its own under the role and claims, and returns its one value, which is JSON.
    func perform(_ sql: String, _ parameters: [String?], role: String, claims: String) throws -> String {
        let session = try open()
        do {
            // The role is one of two constants; the claims are text from outside, and so a parameter.
            try session.runScript("begin; set local role \(role)")
            _ = try session.queryRows("select set_config('request.jwt.claims', $1, true)", [claims])
            let json = try session.queryRows(sql, parameters).first?.first ?? nil
            try session.runScript("commit")
            return json ?? "null"
        } catch {
            rollBack(session)
            throw error
        }
    }

    private func rollBack(_ session: DatabaseSession) {
        do {
            if !session.isBroken { try session.runScript("rollback") }
        } catch {
            logger.warning("The demo's session is given up: \(error)")
        }
        if session.isBroken { self.session = nil }
    }

    private func open() throws -> DatabaseSession {
        if let session, !session.isBroken { return session }
        let fresh = try DatabaseSession(conninfo: conninfo)
        session = fresh
        return fresh
    }
}
