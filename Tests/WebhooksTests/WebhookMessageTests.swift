import Foundation
import Hub
import Testing

@testable import Webhooks

/// What a backend is sent, and what it knows the hub by (Standard Webhooks).
@Suite struct WebhookMessageTests {
    /// A vector that implementations of Standard Webhooks have in their tests.
    @Test func theSignatureIsThatOfStandardWebhooks() throws {
        let secret = try #require(WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
        let body = Array(#"{"test": 2432232314}"#.utf8)
        #expect(
            secret.signature(of: body, id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: 1_614_265_330)
                == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }

    @Test(arguments: [
        "", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_plJ3nmyCDGBKInavdOK15jsl", "whsec_no base64 at all!",
    ]) func aSecretThatIsShortOrNoneIsRefused(_ text: String) {
        #expect(WebhookSecret(text) == nil)
    }

    @Test func aMessageHasAllThatHappened() throws {
        var joined = Happenings.Event(.memberJoined, at: 1_790_000_000_123)
        joined.channel = ChannelKey(topic: "realtime:a \"room\"", isPrivate: true)
        joined.key = "ada"
        joined.user = "11111111"
        joined.payload = Array(#"{"name":"Ada"}"#.utf8)
        var missed = Happenings.Event(.missed, at: 1_790_000_000_456)
        missed.count = 7
        let message = WebhookMessage(id: "msg_1", [joined, missed], node: "one")
        #expect(message.count == 2)
        // W3C Trace Context, section 3.2.
        #expect(message.traceparent.wholeMatch(of: /00-[0-9a-f]{32}-[0-9a-f]{16}-00/) != nil, "\(message.traceparent)")
        let json = try #require(
            JSONSerialization.jsonObject(with: Data(message.body)) as? [String: Any] as NSDictionary?)
        #expect(
            json == [
                "type": "roost.events", "timestamp": "2026-09-21T14:13:20Z",
                "data": [
                    "node": "one",
                    "events": [
                        [
                            "type": "member.joined", "at": 1_790_000_000_123, "channel": "a \"room\"", "private": true,
                            "key": "ada", "user": "11111111", "payload": ["name": "Ada"],
                        ],
                        ["type": "events.missed", "at": 1_790_000_000_456, "count": 7],
                    ],
                ],
            ] as NSDictionary)
    }
}
