import Foundation
import Hub
import Signatures
import TestSupport
import Testing
import Wire

@testable import Push

private func bytes(_ text: String) -> [UInt8] { Base64URL.decode(text.utf8) ?? [] }

struct ContentCodingTests {
    /// RFC 8188, section 3.1.
    @Test func encodesTheExampleOfOneRecord() {
        let body = ContentCoding.encode(
            [.init(bytes: Array("I am the walrus".utf8))], secret: bytes("yqdlZ-tYemfogSmv7Ws5PQ"),
            salt: bytes("I1BsxtFttlv3u_Oo94xnmw"), recordSize: 4096, keyID: [])
        #expect(body == bytes("I1BsxtFttlv3u_Oo94xnmwAAEAAA-NAVub2qFgBEuQKRapoZu-IxkIva3MEB1PD-ly8Thjg"))
    }

    /// RFC 8188, section 3.2: the first record is padded.
    @Test func encodesTheExampleOfTwoRecords() {
        let body = ContentCoding.encode(
            [.init(bytes: Array("I am th".utf8), padding: 1), .init(bytes: Array("e walrus".utf8))],
            secret: bytes("BO3ZVPxUlnLORbVGMpbT1Q"), salt: bytes("uNCkWiNYzKTnBN9ji3-qWA"), recordSize: 25,
            keyID: Array("a1".utf8))
        #expect(
            body
                == bytes(
                    "uNCkWiNYzKTnBN9ji3-qWAAAABkCYTHOG8chz_gnvgOqdGYovxyjuqRyJFjEDyoF1Fvkj6hQPdPHI51OEUKEpgz3SsLWIqS_uA"
                ))
    }
}

struct MessageEncryptionTests {
    private static let point = bytes(
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4")
    private static let secret = bytes("BTBZMqHH6r4Tts7J_aSIgg")

    /// RFC 8291, section 5.
    @Test func encryptsTheExample() throws {
        let browser = try #require(WebPushKeys(publicKey: Self.point, secret: Self.secret))
        let scalar = bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw")
        #expect(
            P256PrivateKey(scalar: scalar)?.point
                == bytes("BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8"))
        let body = MessageEncryption.encrypt(
            Array("When I grow up, I want to be a watermelon".utf8), for: browser, scalar: scalar,
            salt: bytes("DGv6ra1nlYgDCS1FRnbzlw"))
        let expected =
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_y"
            + "l95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        #expect(body == bytes(expected))
    }

    @Test func takesAsMuchAsAPushServiceDoes() throws {
        let browser = try #require(WebPushKeys(publicKey: Self.point, secret: Self.secret))
        #expect(MessageEncryption.longestText == 3993)
        var random = SeededGenerator(seed: 1)
        let body = MessageEncryption.encrypt([UInt8](repeating: 65, count: 3993), for: browser, using: &random)
        #expect(body?.count == 4096)
        let longer = MessageEncryption.encrypt([UInt8](repeating: 65, count: 3994), for: browser, using: &random)
        #expect(longer == nil)
    }

    @Test func noTwoMessagesAreEncryptedAlike() throws {
        let browser = try #require(WebPushKeys(publicKey: Self.point, secret: Self.secret))
        var random = SystemRandomNumberGenerator()
        let bodies = Set((0..<20).compactMap { _ in MessageEncryption.encrypt([1], for: browser, using: &random) })
        #expect(bodies.count == 20)
        #expect(Set(bodies.map { Array($0.prefix(16)) }).count == 20)
        #expect(Set(bodies.map { Array($0[21..<86]) }).count == 20)
    }

    /// `ROOST_MEASURE=1` prints what a message costs, its key pair included.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["ROOST_MEASURE"] != nil)) func costsLittle() throws {
        let browser = try #require(WebPushKeys(publicKey: Self.point, secret: Self.secret))
        let text = [UInt8](repeating: 65, count: 300)
        var random = SystemRandomNumberGenerator()
        let rounds = 5000
        for _ in 0..<500 { _ = MessageEncryption.encrypt(text, for: browser, using: &random) }
        let before = clock()
        for _ in 0..<rounds { _ = MessageEncryption.encrypt(text, for: browser, using: &random) }
        print("a message takes \(Double(clock() - before) / Double(rounds)) µs of CPU")
    }

    @Test func keysThatAreNoneAreRefused() throws {
        var outside = Self.point
        outside[64] ^= 1
        let keys = try #require(WebPushKeys(publicKey: outside, secret: Self.secret))
        let told = JSONWriter.object { json in
            json.writeMember("p256dh", Base64URL.encode(outside))
            json.writeMember("auth", Base64URL.encode(Self.secret))
        }
        #expect(WebPushKeys(subscription: JSON(trusted: told[...])) == nil)
        #expect(MessageEncryption.encrypt([1], for: keys, scalar: Self.secret + Self.secret, salt: Self.secret) == nil)
        #expect(WebPushKeys(publicKey: [UInt8](repeating: 0, count: 65), secret: Self.secret) == nil)
        #expect(WebPushKeys(publicKey: Array(Self.point.prefix(33)), secret: Self.secret) == nil)
        #expect(WebPushKeys(publicKey: Self.point + [0], secret: Self.secret) == nil)
        #expect(WebPushKeys(publicKey: Self.point, secret: Array(Self.secret.dropLast())) == nil)
        let order = bytes("_____wAAAAD__________7zm-q2nF56E87nKwvxjJVE")
        #expect(order.count == 32)
        #expect(P256PrivateKey(scalar: order) == nil)
        #expect(P256.exchange(scalar: order, with: Self.point) == nil)
        #expect(P256PrivateKey(scalar: [UInt8](repeating: 0, count: 32)) == nil)
        #expect(P256PrivateKey(scalar: [UInt8](repeating: 255, count: 32)) == nil)
        #expect(P256PrivateKey(scalar: order.dropLast() + [0x50]) != nil)
    }
}
