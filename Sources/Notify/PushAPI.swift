package import Gateway
package import Hub
import Push
import Wire

/// The HTTP API of pushes: apps register phones and Live Activities, backends update, start and broadcast.
///
/// Verifies and reads on the loop that the request came in by; what takes the database is done by the desk, which replies.
package struct PushAPI: HTTPHandler {
    private let desk: PushDesk?
    private let verifier: any TokenVerifier
    private let clock: @Sendable () -> HubTime

    /// - Parameter desk: nil where the operator has configured no pushes.
    package init(desk: PushDesk?, verifier: any TokenVerifier, clock: @escaping @Sendable () -> HubTime) {
        self.desk = desk
        self.verifier = verifier
        self.clock = clock
    }

    package func judge(_ head: HTTPRequest) -> HTTPVerdict {
        guard let route = PushRoute(path: head.path) else { return .notServed }
        guard desk != nil else {
            return .answered(
                .pushProblem(
                    501,
                    "This hub sends no pushes: its operator has to set apns.topic, apns.team_id, apns.key_id and "
                        + "apns.private_key."))
        }
        guard route.methods.contains(head.method) else {
            let methods = route.methods.map(\.rawValue)
            var response = HTTPResponse.pushProblem(405, "Use \(methods.joined(separator: " or ")).")
            response.headers.append(("allow", (methods + ["OPTIONS"]).joined(separator: ", ")))
            return .answered(response)
        }
        guard let token = head.token else {
            return .answered(.pushProblem(401, "A token is missing: send the header Authorization: Bearer TOKEN."))
        }
        do { _ = try verifier.verify(token, at: clock()) } catch {
            return .answered(.pushProblem(401, error.message))
        }
        return .admitted
    }

    package func respond(to request: HTTPRequest, later reply: HTTPReply) -> HTTPAnswer? {
        guard let route = PushRoute(path: request.path), let desk, let token = request.token else { return nil }
        let call: PushCall
        do {
            let claims = try verifier.verify(token, at: clock())
            call = try desk.reader.call(route, request, by: claims)
        } catch let refusal as Refusal {
            return .now(.pushProblem(401, refusal.message))
        } catch let problem as CallReader.Problem {
            return .now(.pushProblem(problem.status, problem.sentence))
        } catch {
            return .now(.pushProblem(500, "The request could not be read."))
        }
        guard desk.take(call, reply) else {
            return .now(.pushProblem(503, "Too many requests wait for the database; try again in a moment."))
        }
        return .later
    }
}

extension HTTPResponse {
    /// In the words of the other calls of the API: under `message`.
    static func pushProblem(_ status: UInt32, _ sentence: String) -> HTTPResponse {
        push(status, Array("{\"message\":".utf8) + JSONString.encode(sentence) + [UInt8(ascii: "}")])
    }

    /// For pages of any origin: what protects the API is the token, not a cookie.
    static func push(_ status: UInt32, _ body: [UInt8]) -> HTTPResponse {
        HTTPResponse(
            status: status, contentType: "application/json", headers: [("access-control-allow-origin", "*")], body: body
        )
    }
}
