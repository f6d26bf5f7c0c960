import CCurl
import Dispatch

/// A JWK Set behind a URL.
///
/// libcurl waits, so it does that on a queue of its own and never on a thread that others need.
struct KeyURL {
    let url: String
    private let queue = DispatchQueue(label: "roost.keys")

    /// A service that takes longer than this is as good as away: the keys from before stay in force.
    private static let timeoutMilliseconds = 5000

    init(_ url: String) { self.url = url }

    /// An empty set is a good one: a service that signs with no key of its own has it.
    func fetch() async throws(KeyProblem) -> KeySet {
        let url = url
        let answer: Result<[UInt8], KeyProblem> = await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: Self.get(url)) }
        }
        do {
            return try KeySet(parsing: answer.get())
        } catch {
            throw KeyProblem("The keys at jwks.url cannot be had: \(error)")
        }
    }

    private static func get(_ url: String) -> Result<[UInt8], KeyProblem> {
        var problem = [CChar](repeating: 0, count: Int(ROOST_FETCH_PROBLEM_SIZE))
        var bytes = [UInt8](repeating: 0, count: KeySet.maximumBytes)
        let count = roost_fetch(url, timeoutMilliseconds, &bytes, bytes.count, &problem)
        guard count >= 0 else {
            let words = problem.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            return .failure(KeyProblem(String(decoding: words, as: UTF8.self)))
        }
        return .success(Array(bytes.prefix(count)))
    }
}
