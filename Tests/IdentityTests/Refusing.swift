import Hub
import Identity
import Wire

/// The moment of the tests: 2,000 seconds after 1970 began.
let testTime = HubTime(monotonic: 0, unix: 2_000_000)

extension TokenVerifier {
    /// Why a token is refused; nil where it is let in.
    func refusal(_ token: String, at time: HubTime = testTime) -> Refusal? {
        do {
            _ = try verify(token, at: time)
            return nil
        } catch {
            return error
        }
    }
}
