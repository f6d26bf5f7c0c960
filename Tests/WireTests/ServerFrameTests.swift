import Testing
import Wire

@Suite struct ServerFrameTests {
    private let topic = JSONString.encode("realtime:room1")
    private let ref = JSON(trusted: Array(#""7""#.utf8)[...])
    private let joinRef = JSON(trusted: Array(#""6""#.utf8)[...])

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test func reply() throws {
        let one = ServerFrame(.v1, topic: topic).reply(joinRef: joinRef, ref: ref, ok: true, response: bytes("{}"))
        #expect(
            try one.text()
                == #"{"topic":"realtime:room1","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":"7"}"#)
        let two = ServerFrame(.v2, topic: topic).reply(
            joinRef: joinRef, ref: ref, ok: false, response: bytes(#"{"reason":"x"}"#))
        #expect(
            try two.text()
                == #"["6","7","realtime:room1","phx_reply",{"status":"error","response":{"reason":"x"}}]"#)
    }

    @Test func heartbeatReplyKeepsNull() throws {
        let phoenix = JSONString.encode("phoenix")
        let one = ServerFrame(.v1, topic: phoenix).reply(joinRef: .null, ref: .null, ok: true, response: bytes("{}"))
        #expect(
            try one.text()
                == #"{"topic":"phoenix","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":null}"#)
        let two = ServerFrame(.v2, topic: phoenix).reply(joinRef: .null, ref: .null, ok: true, response: bytes("{}"))
        #expect(try two.text() == #"[null,null,"phoenix","phx_reply",{"status":"ok","response":{}}]"#)
    }

    /// pydantic drops a version 1 frame without the key `ref`.
    @Test(arguments: ["system", "broadcast", "presence_state", "presence_diff", "postgres_changes"])
    func versionOneSaysNullExplicitly(_ event: String) throws {
        let frames = ServerFrame(.v1, topic: topic)
        let frame =
            switch event {
            case "system": frames.push("system", joinRef: joinRef, payload: bytes("{}"))
            case "broadcast": frames.push("broadcast", payload: bytes("{}"))
            case "presence_state": frames.push("presence_state", joinRef: joinRef, payload: bytes("{}"))
            case "presence_diff": frames.push("presence_diff", payload: [bytes("{}")[...]])
            default: frames.push("postgres_changes", payload: [bytes("{")[...], bytes("}")[...]])
            }
        #expect(try frame.text() == #"{"topic":"realtime:room1","event":"\#(event)","payload":{},"ref":null}"#)
    }

    @Test func pushes() throws {
        let frames = ServerFrame(.v2, topic: topic)
        #expect(
            try frames.push("system", joinRef: joinRef, payload: bytes("{}")).text()
                == #"["6",null,"realtime:room1","system",{}]"#)
        #expect(
            try frames.push("phx_error", joinRef: joinRef, ref: joinRef, payload: bytes("{}")).text()
                == #"["6","6","realtime:room1","phx_error",{}]"#)
        #expect(
            try frames.push("broadcast", payload: bytes(#"{"a":1}"#)).text()
                == #"[null,null,"realtime:room1","broadcast",{"a":1}]"#)
        #expect(
            try ServerFrame(.v1, topic: topic).push("phx_close", joinRef: joinRef, ref: joinRef, payload: bytes("{}"))
                .text()
                == #"{"topic":"realtime:room1","event":"phx_close","payload":{},"ref":"6"}"#)
    }

    @Test func piecesAreJoined() throws {
        let pieces = [bytes(#"{"ids":[1],"data":"#)[...], bytes(#"x{"a":2}x"#)[1..<8], bytes("}")[...]]
        #expect(
            try ServerFrame(.v2, topic: topic).push("postgres_changes", payload: pieces).text()
                == #"[null,null,"realtime:room1","postgres_changes",{"ids":[1],"data":{"a":2}}]"#)
    }

    @Test func topicsAreEscaped() throws {
        let frame = ServerFrame(.v2, topic: JSONString.encode("realtime:\"\\\n")).push("system", payload: bytes("{}"))
        #expect(try frame.text() == #"[null,null,"realtime:\"\\\n","system",{}]"#)
    }

    /// The announced length is computed, not counted: it must be right for every size of every part.
    @Test(arguments: [ProtocolVersion.v1, .v2]) func lengthsAreRightAroundTheHeaderLimits(_ version: ProtocolVersion)
        throws
    {
        let frames = ServerFrame(version, topic: topic)
        let overhead = try ReceivedFrame(frames.push("system", payload: bytes("{}")).bytes).payload.count - 2
        for total in [100, 124, 125, 126, 127, 128, 65_534, 65_535, 65_536, 65_537, 70_000] {
            let payload = bytes("{\"" + String(repeating: "k", count: total - overhead - 6) + "\":1}")
            let frame = try ReceivedFrame(frames.push("system", payload: payload).bytes)
            #expect(frame.payload.count == total)
            #expect(frame.headerCount == (frame.payload.count < 126 ? 2 : frame.payload.count < 65_536 ? 4 : 10))
            let json = try JSON(parsing: frame.payload)
            #expect((version == .v1 ? json["payload"] : json.elements.last)?.bytes.elementsEqual(payload) == true)
        }
        for count in 0..<300 {
            let long = JSON(trusted: JSONString.encode(String(repeating: "9", count: count))[...])
            let reply = frames.reply(joinRef: long, ref: long, ok: count % 2 == 0, response: bytes("{}"))
            #expect(throws: Never.self) { try JSON(parsing: ReceivedFrame(reply.bytes).payload) }
        }
    }

    // MARK: Kind 4

    @Test func userBroadcast() throws {
        let user = UserBroadcast(
            event: "cursor", encoding: .json, payload: bytes(#"{"x":1}"#)[...], metadata: bytes(#"{"id":"m-1"}"#))
        let frame = try #require(ServerFrame.userBroadcast(user, topic: "realtime:room1"))
        let received = try ReceivedFrame(frame.bytes)
        #expect(received.opcode == 2)
        #expect(
            received.payload == [4, 14, 6, 12, 1] + bytes(#"realtime:room1cursor{"id":"m-1"}{"x":1}"#))
    }

    @Test func userBroadcastWithoutMetadata() throws {
        let user = UserBroadcast(event: "é", encoding: .raw, payload: [9, 0, 255, 9][1..<3], metadata: nil)
        let frame = try #require(ServerFrame.userBroadcast(user, topic: "t"))
        #expect(try ReceivedFrame(frame.bytes).payload == [4, 1, 2, 0, 0] + bytes("té") + [0, 255])
    }

    @Test func userBroadcastFieldsFitTheirLengthByte() throws {
        func frame(_ topic: Int, _ event: Int, _ metadata: Int) -> Frame? {
            let text = String(repeating: "x", count: 300)
            let user = UserBroadcast(
                event: String(text.prefix(event)), encoding: .raw, payload: [],
                metadata: Array(text.utf8.prefix(metadata)))
            return ServerFrame.userBroadcast(user, topic: String(text.prefix(topic)))
        }
        let longest = try #require(frame(255, 255, 255))
        #expect(try ReceivedFrame(longest.bytes).payload.count == 5 + 3 * 255)
        #expect(frame(256, 1, 0) == nil)
        #expect(frame(1, 256, 0) == nil)
        #expect(frame(1, 1, 256) == nil)
    }
}
