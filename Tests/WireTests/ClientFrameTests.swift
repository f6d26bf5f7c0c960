import Testing
import Wire

@Suite struct ClientFrameTests {
    private func read(_ text: String, _ version: ProtocolVersion) throws -> ClientFrame {
        try ClientFrame(text: Array(text.utf8)[...], version: version)
    }

    private func show(_ frame: ClientFrame) -> String {
        guard case .json(let payload) = frame.body else { return "binary" }
        return "\(frame.joinRef) \(frame.ref) \(frame.topic) \(frame.event) \(payload)"
    }

    // MARK: Version 1: an object

    @Test(arguments: [
        (
            #"{"event":"heartbeat","payload":{},"topic":"phoenix","ref":null,"join_ref":null}"#,
            "null null phoenix heartbeat {}"
        ),
        (
            #"{"topic":"realtime:a","event":"phx_join","payload":{"config":{}},"ref":"1","join_ref":"1"}"#,
            #""1" "1" realtime:a phx_join {"config":{}}"#
        ),
        (#"{"topic":"t","event":"e","payload":{},"ref":"9"}"#, #"null "9" t e {}"#),
        (#"{"topic":"t","event":"e","payload":[1, 2],"ref":9,"join_ref":4.5}"#, "4.5 9 t e [1, 2]"),
        (#"{"extra":{"topic":"x"},"topic":"t","event":"e","payload":null,"ref":null}"#, "null null t e null"),
        (#" {"t\u006fpic":"a\u00e9\n","event":"e" , "payload" : { } ,"ref":null} "#, "null null aé\n e { }"),
        (#"{"topic":"first","topic":"last","event":"e","payload":{},"ref":null}"#, "null null last e {}"),
    ])
    func readsObjects(_ text: String, _ shown: String) throws { #expect(try show(read(text, .v1)) == shown) }

    @Test(arguments: [
        ("", ClientFrame.Malformed.json(offset: 0)), ("{", .json(offset: 1)), ("[]", .notAnObject), ("7", .notAnObject),
        (#"[null,"1","phoenix","heartbeat",{}]"#, .notAnObject), ("{}", .missing("topic")),
        (#"{"topic":"t"}"#, .missing("event")), (#"{"topic":"t","event":"e"}"#, .missing("payload")),
        (#"{"topic":"t","event":"e","payload":{}}"#, .missing("ref")),
        (#"{"topic":1,"event":"e","payload":{},"ref":null}"#, .wrongType("topic")),
        (#"{"topic":null,"event":"e","payload":{},"ref":null}"#, .wrongType("topic")),
        (#"{"topic":"t","event":["e"],"payload":{},"ref":null}"#, .wrongType("event")),
        (#"{"topic":"t","event":"e","payload":{},"ref":{}}"#, .wrongType("ref")),
        (#"{"topic":"t","event":"e","payload":{},"ref":true}"#, .wrongType("ref")),
        (#"{"topic":"t","event":"e","payload":{},"ref":"1","join_ref":[]}"#, .wrongType("join_ref")),
        (#"{"topic":"t","event":"e","payload":{},"ref":"1"}x"#, .json(offset: 48)),
    ])
    func refusesObjects(_ text: String, _ malformed: ClientFrame.Malformed) {
        #expect(throws: malformed) { try read(text, .v1) }
    }

    // MARK: Version 2: an array of five

    @Test(arguments: [
        (#"[null,"26","phoenix","heartbeat",{}]"#, #"null "26" phoenix heartbeat {}"#),
        (#"["6","7","realtime:room1","broadcast",{"event":"x"}]"#, #""6" "7" realtime:room1 broadcast {"event":"x"}"#),
        (#" [ 6 , 7 , "t" , "e" , "any" ] "#, #"6 7 t e "any""#),
        (#"["6","7","t","e",{},"more",[1]]"#, #""6" "7" t e {}"#),
        (#"["\u0036","\"","t","e",{}]"#, #""\u0036" "\"" t e {}"#),
    ])
    func readsArrays(_ text: String, _ shown: String) throws { #expect(try show(read(text, .v2)) == shown) }

    @Test(arguments: [
        ("", ClientFrame.Malformed.json(offset: 0)), ("{}", .notAnArrayOfFive), ("[]", .notAnArrayOfFive),
        (#"["6","7","t","e"]"#, .notAnArrayOfFive), (#""[1,2,3,4,5]""#, .notAnArrayOfFive),
        (#"["6","7","t","e",{}"#, .json(offset: 19)), (#"[{},"7","t","e",{}]"#, .wrongType("join_ref")),
        (#"["6",[],"t","e",{}]"#, .wrongType("ref")), (#"["6",false,"t","e",{}]"#, .wrongType("ref")),
        (#"["6","7",null,"e",{}]"#, .wrongType("topic")), (#"["6","7","t",5,{}]"#, .wrongType("event")),
        (#"{"topic":"t","event":"e","payload":{},"ref":null}"#, .notAnArrayOfFive),
    ])
    func refusesArrays(_ text: String, _ malformed: ClientFrame.Malformed) {
        #expect(throws: malformed) { try read(text, .v2) }
    }

    @Test func refusesBytesThatAreNoText() {
        let bytes = Array(#"["6","7","t","e",{"a":""#.utf8) + [0xC3, 0x28] + Array(#""}]"#.utf8)
        #expect(throws: ClientFrame.Malformed.json(offset: 23)) { try ClientFrame(text: bytes[...], version: .v2) }
    }

    @Test func payloadKeepsItsText() throws {
        let payload = #"{ "n":1.50, "n":1e2,"s":"\u0041/\/" ,"o":{"b":1,"a":2}}"#
        for (text, version) in [
            (#"["1","2","t","e",\#(payload)]"#, ProtocolVersion.v2),
            (#"{"ref":"2","payload":\#(payload),"topic":"t","event":"e"}"#, .v1),
        ] {
            guard case .json(let body) = try read(text, version).body else {
                Issue.record("not JSON")
                continue
            }
            #expect(body.description == payload)
        }
    }

    @Test func aMillionExtraElementsCostNoMemory() throws {
        let text = #"["6","7","t","e",{}"# + String(repeating: ",1", count: 1_000_000) + "]"
        #expect(try show(read(text, .v2)) == #""6" "7" t e {}"#)
    }
}
