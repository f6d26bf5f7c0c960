package import HTTP

/// An error in a request, whatever its stream.
package enum StreamComplaint: Error, Sendable, Equatable {
    case badRequest(String)
    case method(allow: String)
    case notImplemented(String)

    package var response: HTTPResponse {
        switch self {
        case .badRequest(let sentence): StreamResponse.makeError(400, sentence)
        case .notImplemented(let sentence): StreamResponse.makeError(501, sentence)
        case .method(let allow): StreamResponse.makeError(405, "This method is not served here", [("allow", allow)])
        }
    }
}
