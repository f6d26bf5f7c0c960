package import Gateway

/// What balancers and clients of Supabase Realtime ask on the port of the clients, answered as it answers.
///
/// Both say that somebody listens, and nothing more: whether the hub is ready is for the operator's port.
package struct ClientHealth: HTTPHandler {
    package init() {}

    package func respond(to request: HTTPRequest, later reply: HTTPReply) -> HTTPAnswer? {
        guard request.method == .get || request.method == .head else { return nil }
        switch request.path {
        case "/healthcheck": return .now(.text(200, "ok"))
        case "/api/ping", "/realtime/v1/api/ping": return .now(.json(200, Array(#"{"message":"Success"}"#.utf8)))
        default: return nil
        }
    }
}
