import Testing

@testable import Push

struct VerdictTests {
    @Test(arguments: [
        (200, "", AnswerVerdict.delivered), (410, "Unregistered", .unregistered(since: 7)),
        (410, "ExpiredToken", .unregistered(since: 7)), (400, "BadDeviceToken", .badToken),
        (400, "DeviceTokenNotForTopic", .badToken), (400, "TopicDisallowed", .refused), (400, "BadTopic", .refused),
        (400, "IdleTimeout", .otherConnection), (403, "ExpiredProviderToken", .staleCredential),
        (403, "InvalidProviderToken", .badKey), (403, "BadEnvironmentKeyInToken", .keyOfOtherEnvironment),
        (403, "SomethingNew", .badKey), (403, "UnrelatedKeyIdInToken", .otherConnection), (404, "BadPath", .refused),
        (405, "MethodNotAllowed", .refused), (413, "PayloadTooLarge", .refused),
        (429, "TooManyRequests", .laterForThisLane), (429, "", .laterForThisLane),
        (429, "TooManyProviderTokenUpdates", .laterWithThisCredential), (500, "InternalServerError", .laterForAll),
        (503, "ServiceUnavailable", .laterForAll), (503, "Shutdown", .laterForAll), (502, "", .laterForAll),
        (418, "teapot", .refused),
    ])
    func followsFromTheAnswer(_ status: Int, _ reason: String, _ verdict: AnswerVerdict) {
        #expect(APNsAnswer.verdict(on: Answer(status: status, reason: reason, timestamp: 7)) == verdict)
    }

    @Test func readsTheBody() {
        let body = Array("{\"reason\":\"Unregistered\",\"timestamp\":1790000000123}".utf8)
        let answer = APNsAnswer.read(Answer(status: 410, body: body))
        #expect((answer.reason, answer.timestamp) == ("Unregistered", 1_790_000_000_123))
        #expect(HTTPDate.milliseconds("Mon, 21 Sep 2026 14:13:20 GMT") == 1_790_000_000_000)
        let page = APNsAnswer.read(Answer(status: 502, body: Array("<html>".utf8)))
        #expect(page.reason.isEmpty && page.timestamp == nil)
    }

    @Test func keepsAReasonShortAndPlain() {
        let body = Array("{\"reason\":\"a\\nb\(String(repeating: "x", count: 500))\"}".utf8)
        let reason = APNsAnswer.read(Answer(status: 400, body: body)).reason
        #expect(reason.hasPrefix("abx") && reason.utf8.count == 80)
        #expect(KnownReasons.apns.name(of: Answer(status: 400, reason: reason)) == "other")
        #expect(KnownReasons.apns.name(of: Answer(status: 502)) == "status 502")
    }

    @Test(arguments: [
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777_000),
        ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199_000), ("Sun, 01 Mar 2026 00:00:00 GMT", 1_772_323_200_000),
    ])
    func readsDates(_ text: String, _ milliseconds: Int64) {
        #expect(HTTPDate.milliseconds(text) == milliseconds)
    }

    @Test(arguments: ["", "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37", "Sun, 99 Nov 1994 08:49:37 GMT"])
    func takesNothingElseForADate(_ text: String) {
        #expect(HTTPDate.milliseconds(text) == nil)
    }
}
