/// Answers requests that the hub's own routes do not. Called on an event loop's thread, so it must not block; slow work
/// replies later, from any thread.
package protocol HTTPHandler: Sendable {
    /// Judges a request by its head alone, so that unauthorized clients are refused before any of the body is stored.
    func judge(_ head: HTTPRequest) -> HTTPVerdict

    /// Answers an admitted request, with its body. Nil if nothing is served at this path.
    func respond(to request: HTTPRequest, later reply: HTTPReply) -> HTTPAnswer?
}

package enum HTTPVerdict: Sendable {
    /// Nothing is served at this path.
    case notServed
    /// The response, whatever the body is; a request with a body then ends the connection.
    case answered(HTTPResponse)
    /// The body must be read before the request is answered.
    case admitted
    /// Like `admitted`, for a request that may have no body whatever its method is.
    case admittedEvenIfEmpty
}

package enum HTTPAnswer: Sendable {
    case now(HTTPResponse)
    /// `HTTPReply.send` will be called.
    case later
}

/// The way back to a request that is answered later, from any thread.
package struct HTTPReply: Sendable {
    private let deliver: @Sendable (HTTPResponse) -> Void

    /// - Parameter deliver: brings the response to the waiting connection, which may be gone by then.
    package init(_ deliver: @escaping @Sendable (HTTPResponse) -> Void) {
        self.deliver = deliver
    }

    package func send(_ response: HTTPResponse) { deliver(response) }
}
