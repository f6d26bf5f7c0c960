import Hub
import TestSupport
import Testing
import Wire

@testable import Clustering

/// What one hub says to another alone, in bytes and back.
@Suite struct DirectPayloadTests {
    static let all: [DirectPayload] = [
        .question(id: .max, subject: 1, [0, 255]), .question(id: 1, subject: 200, []),
        .answer(id: 7, nil), .answer(id: 7, []), .answer(id: 7, [1, 2, 3]),
    ]

    @Test(arguments: all) func comesBackAsItWas(_ payload: DirectPayload) throws {
        #expect(try DirectPayload(payload.encoded[...]) == payload)
    }

    @Test(arguments: all) func isReadUnlessItIsCutOff(_ payload: DirectPayload) {
        let bytes = payload.encoded
        for length in bytes.indices {
            #expect(throws: RelayReader.Malformed.self) { try DirectPayload(bytes[..<length]) }
        }
    }

    @Test func whatANewerHubSaysIsPassedOver() throws {
        #expect(try DirectPayload([200, 1, 2, 3]) == nil)
        for payload in Self.all {
            #expect(
                try DirectPayload((payload.encoded + [1, 2, 3])[...]) == payload, "behind what it has")
        }
    }

    @Test func anyBytesAreReadOrRefused() {
        var random = SeededGenerator(seed: 9)
        for _ in 0..<20_000 {
            var bytes = Self.all.randomElement(using: &random)?.encoded ?? []
            for _ in 0...Int.random(in: 0...3, using: &random) where !bytes.isEmpty {
                bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
            }
            do { _ = try DirectPayload(bytes[...]) } catch {}
        }
    }
}
