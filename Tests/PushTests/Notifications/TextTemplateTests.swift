import Push
import Testing
import Wire

@Suite struct TextTemplateTests {
    private func variables(_ json: String) throws -> TemplateVariables {
        TemplateVariables(try JSON(parsing: Array(json.utf8)))
    }

    @Test(arguments: [
        ("{sender_name}: {preview}", "Ann: Hi {unread}"), ("{{{sender_name}}}", "{Ann}"),
        ("{{sender_name}}", "{sender_name}"),
        ("", ""), ("plain", "plain"), ("{unread}/{muted}/{typing}/{nothing}/{null}.", "3/true/Ben, Ćas//."),
        ("{sender_name}{sender_name}", "AnnAnn"), ("👩‍👩‍👧{sender_name}🇩🇪", "👩‍👩‍👧Ann🇩🇪"), ("{object}", #"{"a": 1}"#),
    ])
    func putsValuesIn(_ template: String, _ text: String) throws {
        let values = try variables(
            #"""
            {"sender_name":"Ann","preview":"Hi {unread}","unread":3,"muted":true,"typing":["Ben","\u0106as"],"null":null,
             "object":{"a": 1}}
            """#)
        #expect(try TextTemplate(template).text(values) == text)
    }

    @Test(arguments: [
        ("Hi {sender", "character 4", "a { without a }; write {{ for a brace"),
        ("Hi sender}", "character 10", "a } without a {; write }} for a brace"),
        (
            "🇩🇪{}", "character 2",
            "{} is no variable; a name has letters, digits and underscores, and {{ stands for a brace"
        ),
        (
            "{a b}", "character 1",
            "{a b} is no variable; a name has letters, digits and underscores, and {{ stands for a brace"
        ),
        ("{a}{sendr}", "character 4", "there is no variable {sendr}; there are a, sender"),
    ])
    func saysWhatIsWrongAndWhere(_ template: String, place: String, problem: String) {
        let error = #expect(throws: TemplateError.self) { try TextTemplate(template, known: ["a", "sender"]) }
        #expect(error?.description == "\(place): \(problem)")
    }
}

@Suite struct AlertTemplateTests {
    @Test func fillsTextsAndKeys() throws {
        var variables = TemplateVariables()
        variables.set("sender_name", "Ann")
        variables.set("preview", "one\ntwo three")
        variables.cut("preview", to: Preview(limit: 8))
        var template = AlertTemplate(
            title: .localized(key: "MESSAGE_FROM", arguments: [try TextTemplate("{sender_name}")]),
            body: .text(try TextTemplate("{preview}")), sound: try TextTemplate("default"))
        template.subtitle = .text(try TextTemplate("{conversation_name}"))
        let payload = template.payload(variables, badge: 2, conversation: "c1", message: "m1")
        #expect(payload.subtitle == nil)
        #expect(
            String(decoding: try payload.fitted().bytes, as: UTF8.self) == """
                {"aps":{"alert":{"title-loc-key":"MESSAGE_FROM","title-loc-args":["Ann"],"body":"one two…"},"badge":2,\
                "sound":"default","thread-id":"c1","mutable-content":1},"conversationId":"c1","messageId":"m1"}
                """)
    }
}
