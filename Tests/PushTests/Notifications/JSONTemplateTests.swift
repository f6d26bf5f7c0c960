import Push
import Testing
import Wire

@Suite struct JSONTemplateTests {
    private let variables = {
        var variables = TemplateVariables()
        variables.set("sender_name", "Ann \"A\" {x}\n")
        variables.set("unread", 3)
        variables.set("connected", true)
        variables.set("typing", ["Ben", "\"C\""])
        variables["ratio"] = JSON(trusted: Array("1.50".utf8)[...])
        return variables
    }()

    @Test(arguments: [
        (#""{unread}""#, "3"), (#""{connected}""#, "true"), (#""{typing}""#, #"["Ben","\"C\""]"#),
        (#""{ratio}""#, "1.50"),
        (#""{sender_name}""#, #""Ann \"A\" {x}\n""#), (#""{unread} new""#, #""3 new""#),
        (#""{sender_name}: {typing}""#, #""Ann \"A\" {x}\n: Ben, \"C\"""#),
        (
            #"{ "a{b" : [ 1.0 , "x" , null, "{unread}" ] , "a{b": {"n": 1e2} }"#,
            #"{"a{b":[1.0,"x",null,3],"a{b":{"n":1e2}}"#
        ),
        (#""{{unread}}""#, #""{unread}""#), (#""\u007bunread}""#, "3"), (#""\u00e9""#, #""\u00e9""#), ("7", "7"),
        // Missing: the empty value of the kind, and "" for names that are not known.
        (#"["{version}","{muted}","{online}","{preview}","{nobody}","{badge}!"]"#, #"[0,false,[],"","","!"]"#),
    ])
    func putsValuesInByTheirTypes(_ template: String, _ json: String) throws {
        let made = try JSONTemplate(template).json(variables)
        #expect(made.description == json)
        #expect(throws: Never.self) { try JSON(parsing: Array(made.bytes)) }
    }

    @Test(arguments: [
        (#"{"a":}"#, "byte 6: this is not JSON (RFC 8259) from here on"),
        (#"{"a":{"b":[0,"x {"]}}"#, #"the value of "a.b.1", character 3: a { without a }; write {{ for a brace"#),
        (#""}""#, "character 1: a } without a {; write }} for a brace"),
        (#"{"a":"{unread}{tpyo}"}"#, #"the value of "a", character 9: there is no variable {tpyo}; there are unread"#),
    ])
    func saysWhatIsWrongAndWhere(_ template: String, _ text: String) {
        let error = #expect(throws: TemplateError.self) { try JSONTemplate(template, known: ["unread"]) }
        #expect(error?.description == text)
    }

    @Test func aContentStateIsAnObjectOfKnownVariables() throws {
        #expect(throws: Never.self) { try ContentTemplate(#"{"a":"{unread}"}"#) }
        #expect(throws: TemplateError.self) { try ContentTemplate("[]") }
        #expect(throws: TemplateError.self) { try ContentTemplate(#"{"a":"{badge}"}"#) }
    }
}
