import Hub
import Testing

@testable import Push

struct PushRequestTests {
    func headers(of push: Push) throws -> [String: String] {
        let token = try ProviderToken(signedBy: Samples.key(), issuedAt: 1, generation: 1)
        let parts = push.headers(authorizedBy: token).split(separator: 0, omittingEmptySubsequences: false)
            .dropLast().map { String(decoding: $0, as: UTF8.self) }
        let pairs = stride(from: 0, to: parts.count, by: 2).map { (parts[$0], parts[$0 + 1]) }
        #expect(pairs.first?.0 == ":path")
        return try Dictionary(pairs) { _, _ in throw DuplicateHeader() }
    }

    struct DuplicateHeader: Error {}

    @Test func saysWhatAppleWantsToKnow() throws {
        let id = PushID()
        let push = Push(
            id: id, to: try Samples.target(10), kind: .liveActivity, priority: 5, expiration: 1_790_000_000,
            collapseID: "c", payload: [1], deadline: 0)
        var headers = try headers(of: push)
        #expect(headers.removeValue(forKey: "authorization")?.hasPrefix("bearer ey") == true)
        let device = String(repeating: "0", count: 63) + "a"
        #expect(
            headers == [
                ":path": "/3/device/" + device, "apns-topic": "com.example.app.push-type.liveactivity",
                "apns-id": id.text, "apns-push-type": "liveactivity", "apns-expiration": "1790000000",
                "apns-priority": "5", "apns-collapse-id": "c",
            ])
    }

    @Test func broadcastsHaveAChannelAndNoTopic() throws {
        let push = Push(
            to: .channel(id: "dHN0LXNyY2gtY2hubA==", environment: .sandbox, bundle: "com.example.app"),
            kind: .liveActivity, priority: 10, expiration: 0, payload: [1], deadline: 0)
        let headers = try headers(of: push)
        #expect(headers[":path"] == "/4/broadcasts/apps/com.example.app")
        #expect(headers["apns-channel-id"] == "dHN0LXNyY2gtY2hubA==" && headers["apns-topic"] == nil)
    }

    @Test func whatCannotBeSentIsNot() throws {
        func outcome(_ target: Push.Target, _ collapseID: String? = nil, bytes: Int = 10) -> PushOutcome? {
            Push(
                to: target, kind: .alert, priority: 10, expiration: 0, collapseID: collapseID,
                payload: [UInt8](repeating: 0x20, count: bytes), deadline: 0
            ).outcomeUnsent
        }
        func channel(_ id: String, _ bundle: String = "com.example.app") -> Push.Target {
            .channel(id: id, environment: .sandbox, bundle: bundle)
        }
        let device = try Samples.target()
        #expect(outcome(device, bytes: 4096) == nil && outcome(channel("c"), bytes: 5120) == nil)
        #expect(outcome(device, bytes: 4097) == .tooLarge(bytes: 4097, limit: 4096))
        #expect(outcome(channel("c"), bytes: 5121) == .tooLarge(bytes: 5121, limit: 5120))
        #expect(outcome(device, bytes: 0) == .refused(status: 400, reason: "PayloadEmpty"))
        #expect(outcome(device, String(repeating: "x", count: 65)) == .refused(status: 400, reason: "BadCollapseId"))
        #expect(outcome(device, "a\r\nb") == .refused(status: 400, reason: "BadCollapseId"))
        #expect(outcome(channel("")) == .refused(status: 400, reason: "BadChannelId"))
        #expect(outcome(channel("c", "a/../b")) == .refused(status: 400, reason: "BadTopic"))
    }
}
