package import HTTP
package import Hub
import Wire

/// `GET /api/rows`: the rows of a table that a user may see, with the cursor from which changes follow.
package struct RowsAPI: HTTPHandler {
    private let source: any RowSource
    private let verifier: any TokenVerifier
    private let clock: @Sendable () -> HubTime
    private static let paths = ["/api/rows", "/realtime/v1/api/rows"]

    package init(source: any RowSource, verifier: any TokenVerifier, clock: @escaping @Sendable () -> HubTime) {
        self.source = source
        self.verifier = verifier
        self.clock = clock
    }

    package func judge(_ head: HTTPRequest) -> HTTPVerdict {
        guard Self.paths.contains(head.path) else { return .notServed }
        guard head.method == .get || head.method == .head else {
            var response = HTTPResponse.error(405, "Use GET")
            response.headers.append(("allow", "GET, HEAD, OPTIONS"))
            return .answered(response.readableAnywhere)
        }
        switch claims(of: head) {
        case .success: return .admittedEvenIfEmpty
        case .failure(let response): return .answered(response)
        }
    }

    package func respond(to request: HTTPRequest, later reply: HTTPReply) -> HTTPAnswer? {
        guard Self.paths.contains(request.path) else { return nil }
        let claims: Claims
        switch self.claims(of: request) {
        case .success(let found): claims = found
        case .failure(let response): return .now(response)
        }
        source.readRows(RowsQuery(request.query), as: claims) { reply.send($0.response.readableAnywhere) }
        return .later
    }

    private enum Judgement {
        case success(Claims)
        case failure(HTTPResponse)
    }

    private func claims(of head: HTTPRequest) -> Judgement {
        guard let token = head.token else {
            let response = HTTPResponse.error(401, "A token is missing: send it as Authorization: Bearer TOKEN")
            return .failure(response.readableAnywhere)
        }
        do throws(Refusal) {
            return .success(try verifier.verifyToken(token, at: clock()))
        } catch {
            return .failure(HTTPResponse.error(401, error.message).readableAnywhere)
        }
    }
}

extension RowsAnswer {
    fileprivate var response: HTTPResponse {
        var response: HTTPResponse
        switch self {
        case .rows(let rows, let next, let cursor):
            var out = JSONWriter(reserving: rows.reduce(256) { $0 + $1.count + 1 })
            out.object {
                $0.array("rows", rows) { $0.writeValue(json: $1) }
                $0.writeMember("cursor", cursor)
                if let next { $0.writeMember("next", json: next) }
            }
            response = .json(200, out.bytes)
        case .refused(let sentence): response = .error(400, sentence)
        case .unavailable:
            response = .error(503, "The database is away; try again in a moment")
            response.headers.append(("retry-after", "1"))
        case .tooMany:
            response = .error(429, "Too many of your requests wait for rows; try again in a moment")
            response.headers.append(("retry-after", "1"))
        }
        response.headers.append(("cache-control", "no-store"))
        return response
    }
}
