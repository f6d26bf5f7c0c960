import Hub
import Testing
import Wire

/// The body of `POST /api/notify`.
@Suite struct UserNotificationTests {
    private func read(_ json: String) throws -> UserNotification {
        try UserNotification(try JSON(parsing: Array(json.utf8))) { "made-up" }
    }

    @Test func everyFieldIsReadAndWritten() throws {
        let notification = try read(
            #"""
            {"id":"order-7","userIds":["ann","bob","ann"],"title":"T","subtitle":"S","body":"B","data":{"order": 7, "x":null},
            "conversationId":"c","badge":3,"sound":"","category":"ORDER","interruptionLevel":"time-sensitive","relevanceScore":0.5,
            "collapseId":"order","when":"always","unheard-of":1}
            """#)
        #expect(notification.id == "order-7" && notification.recipients == .users(["ann", "bob"]))
        let content = notification.content
        #expect(content.title == "T" && content.subtitle == "S" && content.body == "B" && content.badge == 3)
        #expect(content.sound == "" && content.category == "ORDER" && content.interruptionLevel == .timeSensitive)
        #expect(content.relevanceScore == 0.5 && content.collapseID == "order" && content.condition == .always)
        #expect(
            content.conversation == "c"
                && content.data.map { String(decoding: $0, as: UTF8.self) } == #"{"order": 7, "x":null}"#)
        #expect(try read(String(decoding: notification.json, as: UTF8.self)) == notification)
        #expect(try NotificationContent(try JSON(parsing: content.json)) == content)
    }

    @Test func whatIsLeftOutHasADefault() throws {
        let notification = try read(#"{"userId":"ann","body":"B","title":null,"badge":null,"userIds":null}"#)
        #expect(notification.id == "made-up" && notification.content.condition == .unseen)
        #expect(notification.content.sound == nil && notification.content.badge == nil)
        let audience = try read(
            #"{"audience":{"table":"public.messages","record":{"conversation_id":"c"}},"body":"B"}"#)
        guard case .audience(let row) = audience.recipients else { throw NotificationProblem("no audience") }
        #expect(
            row.table == "public.messages" && String(decoding: row.record, as: UTF8.self) == #"{"conversation_id":"c"}"#
        )
        #expect(try read(String(decoding: audience.json, as: UTF8.self)) == audience)
    }

    @Test(arguments: [
        (#"{"title":"T"}"#, "userId"), (#"{"userId":"a","userIds":["b"],"title":"T"}"#, "one of"),
        (#"{"userId":"","title":"T"}"#, "userId"), (#"{"userId":7,"title":"T"}"#, "userId"),
        (#"{"userIds":[],"title":"T"}"#, "userIds"), (#"{"userIds":"a","title":"T"}"#, "userIds"),
        (#"{"userIds":["a",""],"title":"T"}"#, "userIds"), (#"{"userId":"a\u0000","title":"T"}"#, "userId"),
        (#"{"audience":{},"title":"T"}"#, "audience"),
        (#"{"audience":{"table":"messages","record":{}},"title":"T"}"#, "audience"),
        (#"{"userId":"a"}"#, "title"), (#"{"userId":"a","title":""}"#, "title"),
        (#"{"userId":"a","title":7}"#, "title"),
        (#"{"userId":"a","title":"T","data":[]}"#, "data"), (#"{"userId":"a","title":"T","data":{"aps":{}}}"#, "aps"),
        (#"{"userId":"a","title":"T","badge":-1}"#, "badge"), (#"{"userId":"a","title":"T","badge":1.5}"#, "badge"),
        (#"{"userId":"a","title":"T","when":"never"}"#, "when"),
        (#"{"userId":"a","title":"T","interruptionLevel":"loud"}"#, "interruptionLevel"),
        (#"{"userId":"a","title":"T","relevanceScore":2}"#, "relevanceScore"),
        (#"{"userId":"a","title":"T","id":""}"#, "id"),
    ])
    func whatIsWrongIsSaid(_ json: String, _ named: String) throws {
        let problem = #expect(throws: NotificationProblem.self) { try read(json) }
        #expect(problem?.sentence.contains(named) == true && problem?.sentence.hasSuffix(".") == true)
    }

    @Test func oneCallHasSoManyUsers() throws {
        func body(_ count: Int) -> String {
            let users = (0..<count).map { "\"u\($0)\"" }.joined(separator: ",")
            return #"{"userIds":[\#(users)],"title":"T"}"#
        }
        guard case .users(let users) = try read(body(UserNotification.mostUsers)).recipients else { return }
        #expect(users.count == UserNotification.mostUsers)
        let problem = #expect(throws: NotificationProblem.self) { try read(body(UserNotification.mostUsers + 1)) }
        #expect(problem?.sentence.contains("1000") == true)
        #expect(throws: NotificationProblem.self) {
            try read(#"{"userId":"\#(String(repeating: "u", count: 1001))","title":"T"}"#)
        }
        let long = String(repeating: "t", count: 16_385)
        #expect(throws: NotificationProblem.self) { try read(#"{"userId":"u","title":"\#(long)"}"#) }
    }
}
