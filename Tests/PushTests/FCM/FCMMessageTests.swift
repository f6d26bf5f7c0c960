import Hub
import Testing
import Wire

@testable import Push

struct FCMMessageTests {
    private static let alert: AlertPayload = {
        var alert = AlertPayload(
            title: .text("Ada"), body: .text("Hello"), badge: 3, threadID: "c-1", conversationID: "c-1", messageID: "7")
        alert.fields = [
            PayloadField(name: "image", value: Array("\"https://example.com/a.png\"".utf8)),
            PayloadField(name: "count", value: Array("5".utf8)), PayloadField(name: "from", value: Array("\"x\"".utf8)),
        ]
        return alert
    }()

    private func push(_ payload: [UInt8], collapseID: String? = nil, expiration: Int64 = 0) throws -> Push {
        let token = try #require(PushToken("cXyz_-0123456789:APA91b", of: .fcm))
        return Push(
            to: .device(PushDestination(token: token, bundle: "")), type: .alert, priority: 10, expiration: expiration,
            collapseID: collapseID, payload: payload, deadline: .max)
    }

    private func message(_ push: Push) throws -> JSON {
        let body = try #require(FCMMessage.body(of: push, at: Samples.start))
        return try #require(try JSON(parsing: body)["message"])
    }

    @Test func showsAnAlertAndCarriesData() throws {
        var style = AndroidStyle()
        style.channel = "messages"
        let (bytes, isCut) = try Self.alert.fitted(for: .fcm, tag: "t", style)
        #expect(!isCut)
        let seconds = Samples.start.unix / 1000
        let message = try message(push(bytes, expiration: seconds + 60))
        #expect(message["token"]?.string == "cXyz_-0123456789:APA91b")
        #expect(
            message["notification"]?.description
                == #"{"title":"Ada","body":"Hello","image":"https://example.com/a.png"}"#)
        #expect(
            message["android"]?.description
                == #"{"priority":"HIGH","ttl":"60s","notification":{"tag":"t","channel_id":"messages","sound":"default","notification_count":3}}"#
        )
        #expect(
            message["data"]?.description
                == #"{"threadId":"c-1","conversationId":"c-1","messageId":"7","count":"5"}"#)
    }

    @Test func isDataAloneWhereTheAppShowsIt() throws {
        var style = AndroidStyle()
        style.isDataOnly = true
        let (bytes, _) = try Self.alert.fitted(for: .fcm, tag: "t", style)
        let message = try message(push(bytes, collapseID: "c"))
        #expect(message["notification"] == nil)
        #expect(message["android"]?.description == #"{"priority":"HIGH","ttl":"0s","collapse_key":"c"}"#)
        #expect((message["data"]?["title"]?.string, message["data"]?["badge"]?.string) == ("Ada", "3"))
    }

    /// A name that comes twice is no JSON for everybody.
    @Test func eachNameComesOnce() throws {
        var (alert, style) = (Self.alert, AndroidStyle())
        style.isDataOnly = true
        alert.subtitle = .localized(key: "IN", arguments: ["a\"b", "c"])
        alert.fields += ["title", "tag", "threadId"].map { PayloadField(name: $0, value: Array("\"mine\"".utf8)) }
        let (bytes, _) = try alert.fitted(for: .fcm, tag: "t", style)
        var names: [String] = []
        let data = try #require(try message(push(bytes))["data"])
        data.forEachMember { names.append($0.key) }
        #expect(names.count == Set(names).count && data["title"]?.string == "mine")
        #expect(data["subtitleLocArgs"]?.string == #"["a\"b","c"]"#)
        alert.title = nil
        alert.body = nil
        #expect(try message(push(alert.fitted(for: .fcm, tag: "t", AndroidStyle()).bytes))["notification"] == nil)
    }

    @Test func whatIsTooLongIsCut() throws {
        var alert = Self.alert
        alert.body = .text(String(repeating: "é", count: 5000))
        let (bytes, isCut) = try alert.fitted(for: .fcm, tag: "t", AndroidStyle())
        #expect(isCut && bytes.count <= 4096 && bytes.count > 4080)
        alert.fields = [PayloadField(name: "a", value: JSONString.encode(String(repeating: "x", count: 5000)))]
        #expect(throws: PayloadError.self) { try alert.fitted(for: .fcm, tag: "t", AndroidStyle()) }
    }

    @Test func whatARequestDecidesIsNotThePayloads() throws {
        let payload = #"{"token":"other","android":{"priority":"NORMAL","ttl":"9s","direct_boot_ok":true},"data":{}}"#
        let message = try message(push(Array(payload.utf8)))
        #expect(message["token"]?.string?.hasPrefix("cXyz") == true)
        #expect(message["android"]?.description == #"{"priority":"HIGH","ttl":"0s","direct_boot_ok":true}"#)
    }

    @Test func activitiesAreDataWithTheirState() throws {
        let payload = ActivityPayload(
            .end(dismissal: 9), timestamp: 5, contentState: JSON(trusted: Array("{\"n\":1}".utf8)[...]), staleDate: 7)
        let message = try message(push(payload.bytes(for: .fcm, activity: "a-1"), collapseID: "activity a-1"))
        #expect(
            message["data"]?.description
                == #"{"activityId":"a-1","event":"end","timestamp":"5","staleDate":"7","contentState":"{\"n\":1}","dismissalDate":"9"}"#
        )
        #expect(throws: PayloadError.noActivities) { try payload.bytes(for: .web, activity: "a-1") }
    }
}

struct FCMAnswerTests {
    private func answer(_ status: Int, _ code: String?, _ error: String = "") -> Answer {
        let details = code.map {
            ",\"details\":[{\"@type\":\"type.googleapis.com/google.firebase.fcm.v1.FcmError\",\"errorCode\":\"\($0)\"}]"
        }
        let body = "{\"error\":{\"code\":\(status),\"message\":\"\(error)\",\"status\":\"CANONICAL\"\(details ?? "")}}"
        return FCMAnswer.read(Answer(status: status, body: Array(body.utf8)))
    }

    @Test(
        arguments: [
            (404, "UNREGISTERED", AnswerVerdict.unregistered(since: nil)), (400, "INVALID_ARGUMENT", .refused),
            (403, "SENDER_ID_MISMATCH", .badToken), (429, "QUOTA_EXCEEDED", .laterForAll),
            (503, "UNAVAILABLE", .laterForAll),
            (500, "INTERNAL", .laterForAll), (401, "THIRD_PARTY_AUTH_ERROR", .refused), (401, nil, .staleCredential),
            (403, nil, .badKey), (404, nil, .refused), (502, nil, .laterForAll), (200, nil, .delivered),
        ] as [(Int, String?, AnswerVerdict)])
    func means(_ status: Int, _ code: String?, _ verdict: AnswerVerdict) {
        #expect(FCMAnswer.verdict(on: answer(status, code)) == verdict)
    }

    @Test func tellsABadTokenFromABadMessage() {
        let bad = answer(400, "INVALID_ARGUMENT", "The registration token is not a valid FCM registration token")
        #expect(FCMAnswer.verdict(on: bad) == .badToken && bad.reason == FCMAnswer.badToken)
        let field = """
            {"error":{"status":"INVALID_ARGUMENT","details":[{"fieldViolations":[{"field":"message.token"}]}]}}
            """
        let violation = FCMAnswer.read(Answer(status: 400, body: Array(field.utf8)))
        #expect(FCMAnswer.verdict(on: violation) == .badToken)
    }

    @Test func aQuotaIsWaitedForAMinuteWhereItSaysNothing() {
        #expect(answer(429, "QUOTA_EXCEEDED").retryAfter == 60_000)
        #expect(FCMAnswer.read(Answer(status: 429, retryAfter: 2000, body: Array("{}".utf8))).retryAfter == 2000)
        #expect(KnownReasons.fcm.name(of: answer(400, "MADE_UP")) == "other")
    }
}
