import DurableStreams
import Hub
import Streams

/// Recent decisions of the policies, so that a client with many short requests needs only one question.
struct StreamRights {
    private struct Key: Hashable {
        let claims: Claims
        let stream: StreamName
        let right: StreamCall.Right
    }

    private var known: [Key: (isAllowed: Bool, until: Int32)] = [:]
    /// Seconds for which a permission and a denial are valid.
    private static let (yes, no): (Int32, Int32) = (60, 2)
    private static let most = 10_000

    /// Nil if the policies must be asked.
    func know(_ claims: Claims, _ stream: StreamName, _ right: StreamCall.Right, at second: Int32) -> Bool? {
        known[Key(claims: claims, stream: stream, right: right)]
            .flatMap { $0.until > second ? $0.isAllowed : nil }
    }

    mutating func note(
        _ isAllowed: Bool, _ claims: Claims, _ stream: StreamName, _ right: StreamCall.Right, at second: Int32
    ) {
        if known.count >= Self.most { known = [:] }
        known[Key(claims: claims, stream: stream, right: right)] = (
            isAllowed, second + (isAllowed ? Self.yes : Self.no)
        )
    }

    /// Called once a second.
    mutating func forget(at second: Int32) {
        guard second % Self.yes == 0, !known.isEmpty else { return }
        known = known.filter { $0.value.until > second }
    }
}

extension StreamCall.Right {
    /// The right in the policies' terms. A client that may write a stream may also cancel it.
    var asked: AuthorizationQuestion.Right {
        switch self {
        case .read: .read(replay: nil)
        case .write: .write(.broadcast)
        case .cancel: .write([.broadcast, .cancel])
        }
    }
}
