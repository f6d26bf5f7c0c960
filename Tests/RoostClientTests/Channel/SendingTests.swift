import RoostClient
import Testing
import Wire

@Suite struct SendingTests {
    private func joined(_ configure: (inout ChannelConfiguration) -> Void = { _ in }) -> Desk {
        let desk = Desk()
        desk.openRoom(configure)
        desk.goOnline()
        desk.subscribe()
        desk.answerJoin()
        return desk
    }

    private func send(_ desk: Desk, _ call: CallID, _ text: String = "{\"n\":1}") {
        desk.channel {
            channel, _, refs, at in
            channel.send(call, .broadcast(event: "e", payload: Array(text.utf8), isJSON: true), &refs, at)
        }
    }

    private var broadcasts: (Desk) -> [ClientMessage] { { $0.sent.filter { $0.event == "broadcast" } } }

    @Test func theAnswerToASendIsTheHubs() throws {
        let desk = joined()
        send(desk, 1)
        #expect(desk.answers[1] == nil)
        let ref = try #require(broadcasts(desk).last?.ref)
        desk.hear("phx_reply", "{\"status\":\"ok\",\"response\":{}}", ref: ref)
        #expect(desk.answers[1] == .some(nil))
        send(desk, 2)
        desk.refuseLast("broadcast", "Unauthorized: no")
        #expect(desk.answers[2] == .some(.refused(reason: "Unauthorized: no")))
        send(desk, 3)
        desk.refuseLast("broadcast", "AuthorizationPending: wait")
        #expect(desk.answers[3] == .some(.busy(reason: "AuthorizationPending: wait")))
    }

    @Test func withoutAnAnswerInTimeItMayHaveHappened() {
        let desk = joined()
        send(desk, 1)
        desk.pass(.seconds(10))
        #expect(desk.answers[1] == .some(.timedOut("the message")))
    }

    @Test func withoutAcknowledgementItIsDoneWhenItIsHandedOver() {
        let desk = joined { $0.acknowledgesBroadcasts = false }
        send(desk, 1)
        #expect(desk.answers[1] == .some(nil))
    }

    @Test func aLossLeavesOpenWhetherItArrived() throws {
        let desk = joined()
        send(desk, 1)
        desk.socketEnds()
        guard case .notConnected = try #require(desk.answers[1]) else {
            Issue.record("\(String(describing: desk.answers[1]))")
            return
        }
    }

    @Test func messagesWaitForTheChannelInOrder() {
        let desk = joined()
        desk.socketEnds()
        for call in 1...3 { send(desk, call, "{\"n\":\(call)}") }
        #expect(desk.answers.count == 1)
        desk.goOnline()
        #expect(broadcasts(desk).isEmpty)
        desk.answerJoin()
        let texts = broadcasts(desk).map { message -> String in
            guard case .broadcast(_, let payload, _) = message.body else { return "" }
            return String(decoding: payload, as: UTF8.self)
        }
        #expect(texts == (1...3).map { "{\"n\":\($0)}" })
        #expect(Set(broadcasts(desk).map(\.joinRef)) == [desk.last("phx_join")?.message.ref])
    }

    @Test func theyDoNotWaitForever() throws {
        let desk = joined()
        desk.socketEnds()
        send(desk, 1)
        desk.random = 0.999
        desk.pass(.seconds(10))
        guard case .notConnected = try #require(desk.answers[1]) else {
            Issue.record("\(String(describing: desk.answers[1]))")
            return
        }
    }

    @Test func noMoreWaitThanThereIsRoomFor() {
        let desk = joined()
        desk.socketEnds()
        for call in 1...(ChannelMachine.heldLimit + 1) { send(desk, call) }
        #expect(desk.answers[ChannelMachine.heldLimit + 1] == .some(.bufferFull(limit: ChannelMachine.heldLimit)))
        #expect(desk.answers[ChannelMachine.heldLimit] == nil)
    }

    @Test func aCancelledCallIsAnsweredOnce() throws {
        let desk = joined()
        send(desk, 1)
        let ref = try #require(broadcasts(desk).last?.ref)
        desk.channel { channel, _, _, _ in channel.cancel(1) }
        #expect(desk.answers[1] == .some(.cancelled))
        desk.hear("phx_reply", "{\"status\":\"error\",\"response\":{\"reason\":\"Unauthorized: x\"}}", ref: ref)
        #expect(desk.answers[1] == .some(.cancelled))
    }

    @Test func beforeSubscribingNothingIsSent() throws {
        let desk = Desk()
        desk.openRoom()
        send(desk, 1)
        guard case .notConnected = try #require(desk.answers[1]) else {
            Issue.record("\(String(describing: desk.answers[1]))")
            return
        }
    }

    @Test func presenceIsTrackedAgainAfterEachJoin() {
        let desk = joined()
        desk.channel { channel, _, refs, at in channel.track(1, Array("{\"a\":1}".utf8), &refs, at) }
        #expect(
            desk.last("presence")?.payload.description
                == "{\"type\":\"presence\",\"event\":\"track\",\"payload\":{\"a\":1}}")
        desk.socketEnds()
        desk.goOnline()
        desk.answerJoin()
        #expect(desk.sent.count { $0.event == "presence" } == 2)
        desk.channel { channel, _, refs, _ in channel.untrack(&refs) }
        #expect(desk.last("presence")?.payload["event"]?.string == "untrack")
        desk.socketEnds()
        desk.goOnline()
        desk.answerJoin()
        #expect(desk.sent.count { $0.event == "presence" } == 3)
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
