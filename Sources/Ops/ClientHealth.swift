package import HTTP

/// What balancers and clients of Supabase Realtime ask on the port of the clients, answered as it answers.
///
/// Both say that somebody listens, and nothing more: whether the hub is ready is for the operator's port.
package struct ClientHealth: HTTPHandler {
    package init() {}

    package func judge(_ head: HTTPRequest) -> HTTPVerdict {
        let response: HTTPResponse
        switch head.path {
        case "/healthcheck": response = .text(200, "ok")
        case "/api/ping", "/realtime/v1/api/ping": response = .json(200, Array(#"{"message":"Success"}"#.utf8))
        default: return .notServed
        }
        return head.method == .get || head.method == .head ? .answered(response) : .notServed
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
