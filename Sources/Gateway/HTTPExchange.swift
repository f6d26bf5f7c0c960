import CWebSockets

/// A request on its way to being answered.
struct HTTPExchange {
    let id: Int
    var request: HTTPRequest
    let isOps: Bool
    /// Of the page that asks; nil for what is no page, and where pages of all origins may.
    let origin: String?
    var response: HTTPResponse?
}
