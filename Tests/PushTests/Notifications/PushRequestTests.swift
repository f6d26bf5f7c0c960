import Hub
import Testing
import Wire

@testable import Push

struct PushRequestTests {
    func headers(of push: Push) throws -> [String: String] {
        let token = try ProviderToken(signedBy: Samples.key(), issuedAt: 1, generation: 1)
        let parts = push.headers(authorizedBy: token.jwt).bytes.split(separator: 0, omittingEmptySubsequences: false)
            .dropLast().map { String(decoding: $0, as: UTF8.self) }
        let pairs = stride(from: 0, to: parts.count, by: 2).map { (parts[$0], parts[$0 + 1]) }
        #expect(pairs.first?.0 == ":path")
        return try Dictionary(pairs) { _, _ in throw DuplicateHeader() }
    }

    struct DuplicateHeader: Error {}

    @Test func saysWhatAppleWantsToKnow() throws {
        let id = PushID()
        let push = Push(
            id: id, to: try Samples.target(10), type: .liveActivity, priority: 5, expiration: 1_790_000_000,
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
            type: .liveActivity, priority: 10, expiration: 0, payload: [1], deadline: 0)
        let headers = try headers(of: push)
        #expect(headers[":path"] == "/4/broadcasts/apps/com.example.app")
        #expect(headers["apns-channel-id"] == "dHN0LXNyY2gtY2hubA==" && headers["apns-topic"] == nil)
    }

    @Test func whatCannotBeSentIsNot() throws {
        func outcome(_ target: Push.Target, _ collapseID: String? = nil, bytes: Int = 10) -> PushOutcome? {
            Push(
                to: target, type: .alert, priority: 10, expiration: 0, collapseID: collapseID,
                payload: [UInt8](repeating: 0x20, count: bytes), deadline: 0
            ).outcomeUnsent
        }
        func channel(_ id: String, _ bundle: String = "com.example.app") -> Push.Target {
            .channel(id: Name(id), environment: .sandbox, bundle: Name(bundle))
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

struct PushIDTests {
    @Test func isALowerCaseUUID() {
        let form = /[0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/
        let ids = (0..<100).map { _ in PushID() } + [PushID(named: "message 7 to phone 8")]
        #expect(ids.allSatisfy { $0.text.wholeMatch(of: form) != nil })
        #expect(Set(ids).count == 101)
    }

    @Test func isTheSameForTheSameName() {
        #expect(PushID(named: "a") == PushID(named: "a"))
        #expect(PushID(named: "a") != PushID(named: "b"))
    }

    @Test func takesUUIDsOnly() {
        #expect(PushID("EABEAE54-14A8-11E5-B60B-1697F925EC7B")?.text == "eabeae54-14a8-11e5-b60b-1697f925ec7b")
        for bad in ["", "x", "eabeae54-14a8-11e5-b60b-1697f925ec7", "eabeae5414a811e5b60b1697f925ec7bxxxx"] {
            #expect(PushID(bad) == nil)
        }
    }

    @Test func collapseIDsFit() {
        #expect(CollapseID.fitting("message-7") == "message-7")
        for text in ["", String(repeating: "x", count: 65), "two words", "é", "a\nb"] {
            let fitting = CollapseID.fitting(text)
            #expect(fitting.utf8.count == 64 && fitting == CollapseID.fitting(text))
        }
    }
}

struct PushTokenTests {
    @Test func takesHexadecimalOfAnyLength() {
        #expect(PushToken(String(repeating: "aB", count: 32))?.text == String(repeating: "ab", count: 32))
        #expect(PushToken(String(repeating: "0f", count: 80)) != nil)
        for bad in ["", "abc", String(repeating: "zz", count: 32), String(repeating: "a", count: 33)] {
            #expect(PushToken(bad) == nil)
        }
    }

    @Test func isNotPrintedWhole() {
        let token = PushToken(String(repeating: "0123456789abcdef", count: 4))
        #expect(token.map { "\($0)" } == "01234567…")
    }
}
