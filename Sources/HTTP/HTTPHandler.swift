/// Answers requests that the hub's own routes do not. Called on an event loop's thread: it must not wait. What takes time
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
    /// The answer, whatever the body is; a body ends the connection then.
    case answered(HTTPResponse)
    /// The body is to be heard.
    case admitted
    /// The same for a request that may do without a body whatever its method is.
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

    /// - Parameter deliver: brings the response to the connection that waits for it, which may be gone by then.
    package init(_ deliver: @escaping @Sendable (HTTPResponse) -> Void) {
        self.deliver = deliver
    }

    package func send(_ response: HTTPResponse) { deliver(response) }
}
