import Hub
import Identity
import Testing

/// Prints what verifying costs; asserts nothing, because machines differ.
@Suite(.serialized) struct VerifySpeedTests {
    @Test(arguments: SignatureAlgorithm.allCases) func freshAndKnown(_ algorithm: SignatureAlgorithm) async throws {
        let key = SigningKey(for: algorithm)
        let set = keySet(key.jwk(kid: "k"))
        let tokens = (0..<(algorithm.isSymmetric ? 1_000 : 100)).map {
            key.token(
                algorithm, "{\"role\":\"authenticated\",\"sub\":\"user-\($0)\",\"iat\":1000,\"exp\":4600}", kid: "k")
        }
        let clock = ContinuousClock()
        func microseconds(_ body: () throws -> Void) rethrows -> Double {
            let duration = try clock.measure(body)
            return Double((duration / tokens.count).attoseconds / 1_000_000_000) / 1000
        }
        var fresh: [Double] = []
        var known: [Double] = []
        for _ in 0..<3 {
            let verifier = try verifier(set)
            fresh.append(try microseconds { for token in tokens { _ = try verifier.verifyToken(token, at: testTime) } })
            known.append(try microseconds { for token in tokens { _ = try verifier.verifyToken(token, at: testTime) } })
        }
        print(
            "verify \(algorithm.rawValue): \(fresh.sorted()[1]) µs fresh, \(known.sorted()[1]) µs known,",
            "\(tokens[0].utf8.count) bytes")
    }
}
