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

/// Kind 3: `3 J R T E M encoding join_ref ref topic event metadata payload` (wire-protocol A2).
@Suite struct BinaryClientFrameTests {
    private func read(_ bytes: [UInt8], _ version: ProtocolVersion = .v2) throws -> (ClientFrame, UserBroadcast) {
        let frame = try ClientFrame(binary: bytes[...], version: version)
        guard case .userBroadcast(let user) = frame.body else { throw ClientFrame.Malformed.unknownKind(3) }
        return (frame, user)
    }

    /// What realtime-js 2.112 was seen to send.
    static let verified: [UInt8] = [3, 1, 1, 0x0E, 6, 0, 1] + Array(#"68realtime:room1cursor{"x":1}"#.utf8)

    @Test func readsTheVerifiedExample() throws {
        let (frame, user) = try read(Self.verified)
        #expect(frame.joinRef.description == #""6""#)
        #expect(frame.ref.description == #""8""#)
        #expect(frame.topic == "realtime:room1")
        #expect(frame.event == "broadcast")
        #expect(user.event == "cursor")
        #expect(user.encoding == .json)
        #expect(Array(user.payload) == Array(#"{"x":1}"#.utf8))
        #expect(user.metadata == nil)
    }

    @Test func readsRawPayloadsAsTheyAre() throws {
        let (_, user) = try read([3, 0, 0, 1, 1, 0, 0] + Array("te".utf8) + [0, 0xFF, 0xC0])
        #expect(user.encoding == .raw)
        #expect(Array(user.payload) == [0, 0xFF, 0xC0])
    }

    @Test func emptyRefsAreNull() throws {
        let (frame, user) = try read([3, 0, 0, 0, 0, 0, 1])
        #expect(frame.joinRef.isNull && frame.ref.isNull)
        #expect(frame.topic.isEmpty && user.event.isEmpty && user.payload.isEmpty)
    }

    @Test func refsBecomeJSONStrings() throws {
        let (frame, _) = try read([3, 2, 4, 0, 0, 0, 1] + Array("\"\\null".utf8))
        #expect(frame.joinRef.description == #""\"\\""#)
        #expect(frame.ref.description == #""null""#)
    }

    @Test func metadataIsSteppedOver() throws {
        let (_, user) = try read([3, 0, 0, 1, 1, 2, 1] + Array("te{}[]".utf8))
        #expect(Array(user.payload) == Array("[]".utf8))
    }

    @Test func fieldsMayBe255BytesLong() throws {
        let long = Array(repeating: UInt8(ascii: "x"), count: 255)
        let (frame, user) = try read([3, 255, 255, 255, 255, 255, 0] + long + long + long + long + long + [1])
        #expect(frame.ref.bytes.count == 257)
        #expect(frame.topic.utf8.count == 255 && user.event.utf8.count == 255)
        #expect(Array(user.payload) == [1])
    }

    @Test func refusesOtherKinds() {
        for kind in UInt8.min...UInt8.max where kind != 3 {
            #expect(throws: ClientFrame.Malformed.unknownKind(kind)) {
                try ClientFrame(binary: ([kind] + Self.verified.dropFirst())[...], version: .v2)
            }
        }
    }

    @Test func everyTruncationBeforeThePayloadIsRefused() throws {
        let header = Self.verified.count - 7
        for count in 0..<header {
            #expect(throws: ClientFrame.Malformed.truncated, "\(count)") {
                try ClientFrame(binary: Self.verified[..<count], version: .v2)
            }
        }
        #expect(throws: Never.self) { try ClientFrame(binary: Self.verified[..<header], version: .v2) }
    }

    @Test func refusesTextThatIsNotUTF8() {
        for field in 0..<5 {
            var bytes: [UInt8] = [3, 0, 0, 0, 0, 0, 1, 0xFF]
            bytes[field + 1] = 1
            #expect(throws: ClientFrame.Malformed.notUTF8) { try ClientFrame(binary: bytes[...], version: .v2) }
        }
    }

    @Test func refusesUnknownEncodings() {
        for encoding in UInt8(2)...255 {
            var bytes = Self.verified
            bytes[6] = encoding
            #expect(throws: ClientFrame.Malformed.wrongType("encoding")) {
                try ClientFrame(binary: bytes[...], version: .v2)
            }
        }
    }

    @Test func versionOneHasNoBinary() {
        #expect(throws: ClientFrame.Malformed.binaryNeedsVersion2) { try read(Self.verified, .v1) }
    }

    @Test func readsFromTheMiddleOfABuffer() throws {
        let buffer = [9, 9] + Self.verified + [9]
        let frame = try ClientFrame(binary: buffer[2..<(buffer.count - 1)], version: .v2)
        #expect(frame.topic == "realtime:room1")
    }
}

@Suite struct ProtocolVersionTests {
    @Test func absentMeansTheFirst() { #expect(ProtocolVersion(vsn: nil) == .v1) }

    @Test(arguments: [("1.0.0", ProtocolVersion.v1), ("1.0.7", .v1), ("2.0.0", .v2), ("2.0.12", .v2)])
    func accepts(_ vsn: String, _ version: ProtocolVersion) { #expect(ProtocolVersion(vsn: vsn) == version) }

    @Test(arguments: [
        "", "1", "2", "1.0", "2.0", "1.1.0", "2.1.0", "3.0.0", "0.0.0", "2.0.0.0", "2.0.", "2.0.x", "2.0.0x", "v2.0.0",
        " 2.0.0",
        "2.0.0 ", "02.0.0", "2.00.0", "-2.0.0", "2.0.-1", "2.0.\u{663}", "²․0․0", "null",
    ])
    func refuses(_ vsn: String) { #expect(ProtocolVersion(vsn: vsn) == nil) }
}

@Suite struct UserBroadcastTests {
    private func text(
        _ payload: String, event: String = "cursor", _ encoding: UserBroadcast.Encoding = .json, metadata: String? = nil
    ) -> String? {
        let user = UserBroadcast(
            event: event, encoding: encoding, payload: Array(payload.utf8)[...],
            metadata: metadata.map { Array($0.utf8) })
        return user.textPayload().map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func jsonBecomesABroadcastPayload() {
        #expect(text(#"{"x": 1.0}"#) == #"{"event":"cursor","payload":{"x": 1.0},"type":"broadcast"}"#)
        #expect(text(" [1]\n") == #"{"event":"cursor","payload":[1],"type":"broadcast"}"#)
        #expect(text("{}", event: "a\"\n") == #"{"event":"a\"\n","payload":{},"type":"broadcast"}"#)
    }

    @Test func metadataGoesAlong() {
        #expect(
            text("{}", metadata: #"{"id":"m-1"}"#)
                == #"{"event":"cursor","payload":{},"type":"broadcast","meta":{"id":"m-1"}}"#)
    }

    @Test func rawBytesHaveNoText() { #expect(text(#"{"x":1}"#, .raw) == nil) }

    @Test(arguments: ["", "{", "{}{}", "nope", #"{"x":}"#, "\u{FEFF}{}"])
    func whatIsNoJSONHasNoText(_ payload: String) { #expect(text(payload) == nil) }
}
