/// One HTTP request.
package struct HTTPRequest: Sendable {
    package let method: Method
    /// Percent-decoded, without the query.
    package let path: String
    /// Of `authorization` (its scheme removed), `apikey` and the query's `apikey` and `token`, the first that is a token.
    package let token: String?
    package let contentType: String?
    package let host: String?
    /// Of a page's request, where the page came from (RFC 6454).
    package let origin: String?
    /// Percent-decoded; of a repeated name the last value.
    package let query: [String: String]
    /// Empty while the request is judged by its head.
    package var body: [UInt8] = []

    package enum Method: String, Sendable {
        case get = "GET"
        case head = "HEAD"
        case post = "POST"
        case put = "PUT"
        case patch = "PATCH"
        case delete = "DELETE"
        case options = "OPTIONS"
        /// Refused before it is judged.
        case other = ""
    }
}

/// What is sent back.
package struct HTTPResponse: Sendable {
    package var status: UInt32
    package var contentType: String
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]

    package init(
        status: UInt32, contentType: String = "", headers: [(name: String, value: String)] = [], body: [UInt8] = []
    ) {
        self.status = status
        self.contentType = contentType
        self.headers = headers
        self.body = body
    }

    package static func json(_ status: UInt32, _ body: [UInt8]) -> HTTPResponse {
        HTTPResponse(status: status, contentType: "application/json", body: body)
    }

    package static func text(_ status: UInt32, _ body: String) -> HTTPResponse {
        HTTPResponse(status: status, contentType: "text/plain; charset=utf-8", body: Array(body.utf8))
    }
}

/// Answers requests that the hub's own routes do not. Called on a loop's thread: it must not wait; what takes time
/// replies later, from any thread.
package protocol HTTPHandler: Sendable {
    /// What is said to a request by its head alone: whoever is not entitled to be heard is answered here, before anything of
    /// the body is kept.
    func judge(_ head: HTTPRequest) -> HTTPVerdict

    /// A request that was admitted, with its body. Nil where nothing is served at this path.
    func respond(to request: HTTPRequest, later reply: HTTPReply) -> HTTPAnswer?
}

package enum HTTPVerdict: Sendable {
    /// Nothing is served at this path.
    case notServed
    /// Whatever the body is; a body ends the connection then.
    case answered(HTTPResponse)
    /// The body is to be heard.
    case admitted
}

package enum HTTPAnswer: Sendable {
    case now(HTTPResponse)
    /// `HTTPReply.send` will be called.
    case later
}

/// The way back to a request that is answered later.
package struct HTTPReply: Sendable {
    let exchange: Int
    let inbox: LoopInbox

    package func send(_ response: HTTPResponse) {
        inbox.post(.respond(exchange, response))
    }
}
