import HTTP
package import Hub
import Synchronization

/// Counts the requests that the hub keeps open, by user: long polls, bodies appended as they arrive, and streaming
/// answers. Tokens that name no user are not counted.
///
/// One table for all loops. Safe from any thread, behind a lock that is held for a look-up.
package final class HeldRequests: Sendable {
    /// Must be given back when the request is answered, or its connection gone.
    package struct Hold: Sendable {
        fileprivate let user: [UInt8]?
    }

    /// Zero for no limit.
    private let most: Atomic<Int>
    private let counts = Mutex<[[UInt8]: Int]>([:])

    package init(most: Int) { self.most = Atomic(most) }

    /// Replaces the limit.
    package func adopt(most: Int) { self.most.store(most, ordering: .relaxed) }

    /// Nil if the user has reached the limit.
    package func enter(_ claims: Claims) -> Hold? {
        let most = most.load(ordering: .relaxed)
        guard most > 0, let subject = claims.subject else { return Hold(user: nil) }
        let user = Array(subject.utf8)
        return counts.withLock { counts in
            guard counts[user, default: 0] < most else { return nil }
            counts[user, default: 0] += 1
            return Hold(user: user)
        }
    }

    package func leave(_ hold: Hold) {
        guard let user = hold.user else { return }
        counts.withLock { counts in
            guard let count = counts[user] else { return }
            counts[user] = count > 1 ? count - 1 : nil
        }
    }

    /// The response to a request over the limit.
    static let refusal: HTTPResponse = {
        var response = HTTPResponse.error(
            429, "One user may not have more requests open at once (limits.requests_per_user); end some, or try later")
        response.headers = [("retry-after", "5")]
        return response
    }()
}
