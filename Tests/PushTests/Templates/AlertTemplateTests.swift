import Push
import Testing
import Wire

@Suite struct AlertTemplateTests {
    @Test func fillsTextsAndKeys() throws {
        var variables = TemplateVariables()
        variables.set("sender_name", "Ann")
        variables.set("preview", "one\ntwo three")
        variables.cut("preview", to: Preview(limit: 8))
        let template = AlertTemplate(
            title: .localized(key: "MESSAGE_FROM", arguments: [try TextTemplate("{sender_name}")]),
            subtitle: .text(try TextTemplate("{conversation_name}")), body: .text(try TextTemplate("{preview}")))
        let payload = template.payload(variables, badge: 2, conversation: "c1", message: "m1")
        #expect(payload.subtitle == nil)
        #expect(
            String(decoding: try payload.fitted().bytes, as: UTF8.self) == """
                {"aps":{"alert":{"title-loc-key":"MESSAGE_FROM","title-loc-args":["Ann"],"body":"one two…"},"badge":2,\
                "sound":"default","thread-id":"c1","mutable-content":1},"conversationId":"c1","messageId":"m1"}
                """)
    }
}
