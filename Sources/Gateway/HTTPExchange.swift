import CWebSockets

/// A request on its way to being answered.
struct HTTPExchange {
    let id: Int
    var request: HTTPRequest
    let isOps: Bool
    var response: HTTPResponse?
}
