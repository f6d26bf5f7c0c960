import Hub
import Identity
import Testing

/// Prints what verifying costs; asserts nothing, because machines differ.
@Suite struct VerifySpeedTests {
    @Test func coldAndWarm() throws {
        let secret = SharedSecret(TokenForge.secret)
        let now = HubTime(monotonic: 0, unix: 1_000_000)
        let tokens = (0..<4_000).map {
            secret.mint(role: "authenticated", subject: "user-\($0)", lifetime: 3600, now: now)
        }
        let clock = ContinuousClock()
        func pass() throws -> Duration {
            try clock.measure { for token in tokens { _ = try secret.verify(token, at: now) } }
        }
        let cold = try pass()
        let warm = try min(pass(), pass(), pass())
        func microseconds(_ duration: Duration) -> Double {
            Double((duration / tokens.count).attoseconds / 1_000_000_000) / 1000
        }
        print("verify: \(microseconds(cold)) µs cold, \(microseconds(warm)) µs warm, \(tokens[0].utf8.count) bytes")
    }
}
