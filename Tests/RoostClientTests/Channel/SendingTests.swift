import RoostClient
import Testing
import Wire

@Suite struct SendingTests {
    private func joined(_ configure: (inout ChannelConfiguration) -> Void = { _ in }) -> ClientHarness {
        let client = ClientHarness()
        client.openRoom(configure)
        client.goOnline()
        client.subscribe()
        client.answerJoin()
        return client
    }

    private func send(_ client: ClientHarness, _ call: CallID, _ text: String = "{\"n\":1}") {
        client.channel {
            channel, _, refs, at in
            channel.sendBroadcast(call, .broadcast(event: "e", payload: Array(text.utf8), isJSON: true), &refs, at)
        }
    }

    private var broadcasts: (ClientHarness) -> [ClientMessage] { { $0.sent.filter { $0.event == "broadcast" } } }

    @Test func theAnswerToASendIsTheHubs() throws {
        let client = joined()
        send(client, 1)
        #expect(client.answers[1] == nil)
        let ref = try #require(broadcasts(client).last?.ref)
        client.hear("phx_reply", "{\"status\":\"ok\",\"response\":{}}", ref: ref)
        #expect(client.answers[1] == .some(nil))
        send(client, 2)
        client.refuseLast("broadcast", "Unauthorized: no")
        #expect(client.answers[2] == .some(.refused(reason: "Unauthorized: no")))
        send(client, 3)
        client.refuseLast("broadcast", "AuthorizationPending: wait")
        #expect(client.answers[3] == .some(.busy(reason: "AuthorizationPending: wait")))
    }

    @Test func withoutAnAnswerInTimeItMayHaveHappened() {
        let client = joined()
        send(client, 1)
        client.pass(.seconds(10))
        #expect(client.answers[1] == .some(.timedOut("the message")))
    }

    @Test func withoutAcknowledgementItIsDoneWhenItIsHandedOver() {
        let client = joined { $0.acknowledgesBroadcasts = false }
        send(client, 1)
        #expect(client.answers[1] == .some(nil))
    }

    @Test func aLossLeavesOpenWhetherItArrived() throws {
        let client = joined()
        send(client, 1)
        client.socketEnds()
        guard case .notConnected = try #require(client.answers[1]) else {
            Issue.record("\(String(describing: client.answers[1]))")
            return
        }
    }

    @Test func messagesWaitForTheChannelInOrder() {
        let client = joined()
        client.socketEnds()
        for call in 1...3 { send(client, call, "{\"n\":\(call)}") }
        #expect(client.answers.count == 1)
        client.goOnline()
        #expect(broadcasts(client).isEmpty)
        client.answerJoin()
        let texts = broadcasts(client).map { message -> String in
            guard case .broadcast(_, let payload, _) = message.body else { return "" }
            return String(decoding: payload, as: UTF8.self)
        }
        #expect(texts == (1...3).map { "{\"n\":\($0)}" })
        #expect(Set(broadcasts(client).map(\.joinRef)) == [client.last("phx_join")?.message.ref])
    }

    @Test func theyDoNotWaitForever() throws {
        let client = joined()
        client.socketEnds()
        send(client, 1)
        client.random = 0.999
        client.pass(.seconds(10))
        guard case .notConnected = try #require(client.answers[1]) else {
            Issue.record("\(String(describing: client.answers[1]))")
            return
        }
    }

    @Test func noMoreWaitThanThereIsRoomFor() {
        let client = joined()
        client.socketEnds()
        for call in 1...(ChannelMachine.heldLimit + 1) { send(client, call) }
        #expect(client.answers[ChannelMachine.heldLimit + 1] == .some(.bufferFull(limit: ChannelMachine.heldLimit)))
        #expect(client.answers[ChannelMachine.heldLimit] == nil)
    }

    @Test func aCancelledCallIsAnsweredOnce() throws {
        let client = joined()
        send(client, 1)
        let ref = try #require(broadcasts(client).last?.ref)
        client.channel { channel, _, _, _ in channel.cancelCall(1) }
        #expect(client.answers[1] == .some(.cancelled))
        client.hear("phx_reply", "{\"status\":\"error\",\"response\":{\"reason\":\"Unauthorized: x\"}}", ref: ref)
        #expect(client.answers[1] == .some(.cancelled))
    }

    @Test func beforeSubscribingNothingIsSent() throws {
        let client = ClientHarness()
        client.openRoom()
        send(client, 1)
        guard case .notConnected = try #require(client.answers[1]) else {
            Issue.record("\(String(describing: client.answers[1]))")
            return
        }
    }

    @Test func presenceIsTrackedAgainAfterEachJoin() {
        let client = joined()
        client.channel { channel, _, refs, at in channel.trackPresence(1, Array("{\"a\":1}".utf8), &refs, at) }
        #expect(
            client.last("presence")?.payload.description
                == "{\"type\":\"presence\",\"event\":\"track\",\"payload\":{\"a\":1}}")
        client.socketEnds()
        client.goOnline()
        client.answerJoin()
        #expect(client.sent.count { $0.event == "presence" } == 2)
        client.channel { channel, _, refs, _ in channel.untrackPresence(&refs) }
        #expect(client.last("presence")?.payload["event"]?.string == "untrack")
        client.socketEnds()
        client.goOnline()
        client.answerJoin()
        #expect(client.sent.count { $0.event == "presence" } == 3)
    }

    @Test func framesAreThoseThatTheHubReads() throws {
        let message = ClientMessage(
            joinRef: "6", ref: "8", topic: "realtime:room1", event: "broadcast",
            body: .broadcast(event: "cursor", payload: Array("{\"x\":1}".utf8), isJSON: true))
        guard case .binary(let bytes) = message.frame else {
            Issue.record("text")
            return
        }
        #expect(bytes == [3, 1, 1, 14, 6, 0, 1] + Array("68realtime:room1cursor{\"x\":1}".utf8))
        let read = try ClientFrame(binary: bytes[...], version: .v2)
        #expect(read.topic == "realtime:room1")

        let long = String(repeating: "e", count: 300)
        let text = ClientMessage(
            joinRef: nil, ref: "8", topic: "realtime:\"", event: "broadcast",
            body: .broadcast(event: long, payload: Array("{}".utf8), isJSON: true))
        guard case .text(let bytes) = text.frame else {
            Issue.record("binary")
            return
        }
        let parsed = try ClientFrame(text: bytes[...], version: .v2)
        #expect(parsed.topic == "realtime:\"")
        guard case .json(let payload) = parsed.body else { return }
        #expect(payload["event"]?.string == long)
    }
}
