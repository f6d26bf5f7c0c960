import Testing
import Wire

/// wire-protocol A3, and what becomes of messages that nobody understands (A2, A4, A8).
@Suite struct HeartbeatTests {
    @Test func echoesTheRef() throws {
        let stage = Stage()
        stage.connect(1)
        #expect(
            try stage.say(#"[null,"26","phoenix","heartbeat",{}]"#, from: 1)
                == [#"1 ← [null,"26","phoenix","phx_reply",{"status":"ok","response":{}}]"#])
    }

    /// The Python client's heartbeat.
    @Test func echoesNull() throws {
        let stage = Stage()
        stage.connect(1, .v1)
        #expect(
            try stage.say(#"{"event":"heartbeat","payload":{},"topic":"phoenix","ref":null,"join_ref":null}"#, from: 1)
                == [#"1 ← {"topic":"phoenix","event":"phx_reply","payload":{"status":"ok","response":{}},"ref":null}"#])
    }

    @Test func anythingElseOnAnUnjoinedTopicIsUnmatched() throws {
        let stage = Stage()
        stage.connect(1)
        stage.connect(2, .v1)
        for event in ["broadcast", "presence", "heartbeat", "whatever", ""] {
            #expect(
                try stage.say(#"["3","4","realtime:room1","\#(event)",{}]"#, from: 1)
                    == [
                        #"1 ← [null,"4","realtime:room1","phx_reply",{"status":"error","response":{"reason":"unmatched topic"}}]"#
                    ])
        }
        #expect(
            try stage.say(#"{"topic":"phoenix","event":"x","payload":{},"ref":"4"}"#, from: 2)
                == [
                    #"2 ← {"topic":"phoenix","event":"phx_reply","payload":{"status":"error","response":{"reason":"unmatched topic"}},"ref":"4"}"#
                ])
        #expect(
            try stage.say([3, 1, 1, 1, 1, 0, 1] + Array("34te{}".utf8), from: 1)
                == [#"1 ← [null,"4","t","phx_reply",{"status":"error","response":{"reason":"unmatched topic"}}]"#])
    }

    /// A good token is not answered, so no client waits for an answer to one; and nobody could match one without a ref.
    @Test func whatNobodyWaitsForIsNotAnswered() throws {
        let stage = Stage()
        stage.connect(1)
        #expect(try stage.say(#"["3","4","realtime:a","access_token",{"access_token":"x"}]"#, from: 1).isEmpty)
        #expect(try stage.say(#"[null,null,"realtime:a","broadcast",{}]"#, from: 1).isEmpty)
        #expect(stage.hub.counters.messagesRefused == [.request: 1])
    }

    @Test func unknownEventsOfAChannelAreMetWithSilence() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1)
        for event in ["whatever", "phx_close", "phx_error", "phx_reply", "system", "postgres_changes", "heartbeat"] {
            #expect(try stage.say(#"["1","2","realtime:a","\#(event)",{}]"#, from: 1).isEmpty)
        }
    }

    @Test func malformedFramesAreDroppedAndTheConnectionKept() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1)
        #expect(throws: ClientFrame.Malformed.json(offset: 1)) { try stage.say("{", from: 1) }
        #expect(throws: ClientFrame.Malformed.notAnArrayOfFive) { try stage.say("{}", from: 1) }
        #expect(throws: ClientFrame.Malformed.unknownKind(9)) { try stage.say([9], from: 1) }
        #expect(try stage.watch { _ in }.isEmpty)
        #expect(try stage.say(#"["1","2","realtime:a","phx_leave",{}]"#, from: 1).count == 2)
    }
}
