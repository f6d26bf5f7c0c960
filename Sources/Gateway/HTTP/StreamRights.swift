import DurableStreams
import Hub
import Streams

/// What the policies said a moment ago: a writer of many short requests is asked about once.
struct StreamRights {
    private struct Key: Hashable {
        let claims: Claims
        let stream: StreamName
        let right: StreamCall.Right
    }

    private var known: [Key: (isAllowed: Bool, until: Int32)] = [:]
    /// Seconds for which a yes holds, and a no.
    private static let (yes, no): (Int32, Int32) = (60, 2)
    private static let most = 10_000

    /// Nil where it has to be asked.
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

    /// To be called once a second.
    mutating func forget(at second: Int32) {
        guard second % Self.yes == 0, !known.isEmpty else { return }
        known = known.filter { $0.value.until > second }
    }
}

extension StreamCall.Right {
    /// In the policies' terms: whoever may write a stream may also cancel it.
    var asked: AuthorizationQuestion.Right {
        switch self {
        case .read: .read(replay: nil)
        case .write: .write(.broadcast)
        case .cancel: .write([.broadcast, .cancel])
        }
    }
}
