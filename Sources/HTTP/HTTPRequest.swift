/// One HTTP request, in the form that handlers receive.
package struct HTTPRequest: Sendable {
    package let method: Method
    /// Percent-decoded, without the query.
    package let path: String
    /// The first token among `authorization` (without its scheme), `apikey`, and the query's `apikey` and `token`.
    package let token: String?
    package let contentType: String?
    package let host: String?
    /// The origin of the requesting page (RFC 6454); nil if the client is not a page.
    package let origin: String?
    /// Percent-decoded; a repeated name has its last value.
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

    /// Creates the request that this head begins, without its body.
    package init(_ head: HTTPHead) {
        method = Method(rawValue: head.method) ?? .other
        path = head.path
        query = head.allQuery
        token = head.callToken(query: query)
        contentType = head.field("content-type")
        host = head.field("host")
        origin = head.field("origin")
    }
}

extension HTTPHead {
    package var hasBody: Bool { body != .none && body != .length(0) }

    /// Percent-decoded; a repeated name has its last value.
    package var allQuery: [String: String] {
        query.isEmpty ? [:] : Dictionary(query.map { ($0.name, $0.value) }) { $1 }
    }

    /// How many times a name occurs in the query.
    package func queryCount(_ name: String) -> Int { query.count { $0.name == name } }

    /// All values of a name in the query, percent-decoded, in order.
    package func queryValues(_ name: String) -> [String] { query.filter { $0.name == name }.map(\.value) }

    /// The token of an HTTP API call; see `TokenSource`.
    ///
    /// - Parameter query: `allQuery`.
    package func callToken(query: [String: String]) -> String? { TokenSource(head: self).ofCall(query: query) }

    /// True for a request like that of a browser's event source (WHATWG HTML, 9.2.2).
    package var asksForEvents: Bool { method == "GET" && field("accept") == "text/event-stream" }

    /// The value of a cookie (RFC 6265, section 4.2.1); a repeated name has its first value. Compares bytes: a
    /// combining mark behind a separator belongs to the value.
    package func cookie(_ name: String) -> String? {
        guard let cookies = field("cookie") else { return nil }
        for cookie in cookies.utf8.split(separator: UInt8(ascii: ";")) {
            let parts = cookie.drop { $0 == UInt8(ascii: " ") }.split(separator: UInt8(ascii: "="), maxSplits: 1)
            if parts.count == 2, parts[0].elementsEqual(name.utf8) { return String(Substring(parts[1])) }
        }
        return nil
    }
}
