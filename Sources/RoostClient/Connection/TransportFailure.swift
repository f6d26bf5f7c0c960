/// How a connection could not be made, or ended.
package enum TransportFailure: Error, Sendable, Equatable {
    /// The upgrade was answered with this HTTP status.
    case refused(status: Int)
    /// A close code (RFC 6455, section 7.4); 1006 where there was none.
    case closed(code: Int)
    /// No connection, or one that broke. One sentence, without a token in it.
    case unreachable(String)
    /// This side ended it.
    case cancelled

    /// The hub wants nobody back: the codes from 4000 up are private agreements (RFC 6455, section 7.4.2), which
    /// supabase-swift takes for final, too.
    package var isFinal: Bool {
        if case .closed(let code) = self { return code >= 4000 }
        return false
    }

    /// One sentence.
    package var reason: String {
        switch self {
        case .refused(401): "The hub refuses the token."
        case .refused(let status): "The hub refuses the connection with HTTP status \(status)."
        case .closed(1006): "The connection broke."
        case .closed(1009): "A message was too large for the hub."
        case .closed(1012): "The hub restarts."
        case .closed(let code): "The hub closed the connection with code \(code)."
        case .unreachable(let what): what
        case .cancelled: "The connection was closed."
        }
    }
}
