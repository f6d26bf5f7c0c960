import Hub
import Push
import Testing
import Wire

/// `alerts.templates`: what alerts about single tables say otherwise.
@Suite struct AlertSectionTests {
    private func general() throws -> AlertTemplate {
        AlertTemplate(
            title: .text(try TextTemplate("{conversation_name}")),
            body: .text(try TextTemplate("{sender_name}: {preview}")),
            sound: try TextTemplate("default"))
    }

    private func variables(_ json: String) throws -> TemplateVariables {
        TemplateVariables(try JSON(parsing: Array(json.utf8)))
    }

    private func payload(_ section: String, _ values: String) throws -> String {
        let templates = try AlertTemplate.sections(of: #"{"app.reminders":\#(section)}"#, otherwise: general())
        let template = try #require(templates["app.reminders"])
        let payload = template.payload(try variables(values), badge: nil, conversation: "c", message: "7")
        return String(decoding: try payload.fitted().bytes, as: UTF8.self)
    }

    @Test func aReminderDoesNotReadAsAMessage() throws {
        let section = #"""
            {"title":"Reminder","body":"{text}","sound":"bell.caf","category":"REMINDER","interruption_level":"time-sensitive",
            "relevance_score":0.9,"thread":"reminders","payload":{"reminderId":"{id}","kind":"reminder","due":"at {due}"}}
            """#
        #expect(
            try payload(section, #"{"text":"Call Ann","id":7,"due":"noon"}"#) == """
                {"aps":{"alert":{"title":"Reminder","body":"Call Ann"},"sound":"bell.caf","thread-id":"reminders",\
                "category":"REMINDER","interruption-level":"time-sensitive","relevance-score":0.9,"mutable-content":1},\
                "conversationId":"c","messageId":"7","reminderId":7,"kind":"reminder","due":"at noon"}
                """)
    }

    @Test func whatASectionDoesNotSayIsThatOfAll() throws {
        #expect(
            try payload(#"{"category":"X"}"#, #"{"conversation_name":"Crew","sender_name":"Ann","preview":"hi"}"#)
                == """
                {"aps":{"alert":{"title":"Crew","body":"Ann: hi"},"sound":"default","thread-id":"c","category":"X",\
                "mutable-content":1},"conversationId":"c","messageId":"7"}
                """)
    }

    /// The row decides, where the section has variables.
    @Test func levelAndSoundByTheRow() throws {
        let section =
            #"{"title":"T","body":"","interruption_level":"{level}","relevance_score":"{score}","sound":"{sound}"}"#
        #expect(
            try payload(section, #"{"level":"passive","score":0.25,"sound":""}"#) == """
                {"aps":{"alert":{"title":"T"},"thread-id":"c","interruption-level":"passive","relevance-score":0.25,\
                "mutable-content":1},"conversationId":"c","messageId":"7"}
                """)
        let unusable = try payload(section, #"{"level":"loud","score":7}"#)
        #expect(!unusable.contains("interruption-level") && !unusable.contains("relevance-score"))
    }

    /// A column `payload` of the statement; what the hub writes stays its own, and no name stands twice.
    @Test func fieldsByTheStatement() throws {
        let section = #"{"title":"T","body":"","payload":{"kind":"reminder","n":1}}"#
        #expect(
            try payload(section, #"{"payload":{"n":2,"aps":{"badge":9},"messageId":"x","deep":{"a":[1]}}}"#) == """
                {"aps":{"alert":{"title":"T"},"sound":"default","thread-id":"c","mutable-content":1},"conversationId":"c",\
                "messageId":"7","kind":"reminder","n":2,"deep":{"a":[1]}}
                """)
        let general = try general().payload(
            try variables(#"{"payload":{"n":3},"preview":"x"}"#), badge: nil, conversation: nil, message: nil)
        #expect(general.fields == [PayloadField(name: "n", value: Array("3".utf8))])
    }

    @Test func localizedLines() throws {
        let text = try payload(
            #"{"title_key":"DUE","body_key":"DUE_BODY","body_arguments":["{text}","{due}"]}"#,
            #"{"text":"a","due":"b"}"#)
        #expect(text.contains(#""title-loc-key":"DUE","loc-key":"DUE_BODY","loc-args":["a","b"]"#))
        let one = try payload(#"{"title":"T","body_key":"K","body_arguments":"{text}|x"}"#, #"{"text":"a"}"#)
        #expect(one.contains(#""title":"T","loc-key":"K","loc-args":["a","x"]"#))
    }

    @Test func namesAreThoseOfAllParts() throws {
        let templates = try AlertTemplate.sections(
            of:
                #"{"a.b":{"title":"{one}","body_key":"K","body_arguments":"{two}","thread":"{three}","payload":{"x":["{four}"]}}}"#,
            otherwise: general())
        #expect(templates["a.b"]?.names == ["one", "two", "three", "four"])
    }

    @Test(arguments: [
        ("[1]", "byte"), ("{", "byte"), (#"{"reminders":{}}"#, "the section of reminders"),
        (#"{"a.b":"x"}"#, "the section of a.b"), (#"{"a.b":{"titel":"x"}}"#, "titel"),
        (#"{"a.b":{"title":"{"}}"#, "title, character 1"), (#"{"a.b":{"title":["x"]}}"#, "title"),
        (#"{"a.b":{"interruption_level":"urgent"}}"#, "interruption_level"),
        (#"{"a.b":{"relevance_score":2}}"#, "relevance_score"), (#"{"a.b":{"payload":[]}}"#, "payload"),
        (#"{"a.b":{"payload":{"aps":{}}}}"#, "payload"), (#"{"a.b":{"payload":{"x":"{y"}}}"#, "payload"),
        (#"{"a.b":{"body_arguments":7}}"#, "body_arguments"),
    ])
    func whatIsWrongIsNamed(_ source: String, _ place: String) throws {
        let general = try general()
        guard source != "[1]" else {
            #expect(try AlertTemplate.sections(of: source, otherwise: general).isEmpty)
            return
        }
        let error = #expect(throws: TemplateError.self) { try AlertTemplate.sections(of: source, otherwise: general) }
        #expect(error?.description.contains(place) == true, "\(error?.description ?? "")")
    }
}

/// What backends may cost.
@Suite struct NotificationBudgetTests {
    @Test func soManyUsersAtOnceAndThenSoManyASecond() {
        var budget = NotificationBudget()
        var users = 0
        while budget.secondsUntilFree(at: 0) == nil {
            budget.spend(1000)
            users += 1000
        }
        #expect(users == NotificationBudget.most)
        #expect(budget.secondsUntilFree(at: 0) == 1)
        #expect(budget.secondsUntilFree(at: 1000) == nil)
        budget.spend(5000)
        #expect(budget.secondsUntilFree(at: 1000) == 5)
        #expect(budget.secondsUntilFree(at: 6000) == nil, "what was spent is there again")
    }

    /// A call that names nobody is work, too.
    @Test func callsCost() {
        var budget = NotificationBudget()
        var calls = 0
        while budget.secondsUntilFree(at: 0) == nil {
            budget.spend(0)
            calls += 1
        }
        #expect(calls == NotificationBudget.most / NotificationBudget.least)
        // A clock that stands still, or jumps far, gives no more than what may be used at once.
        #expect(budget.secondsUntilFree(at: .max / 2) == nil)
        budget.spend(NotificationBudget.most)
        #expect(budget.secondsUntilFree(at: .max / 2) != nil)
    }
}
