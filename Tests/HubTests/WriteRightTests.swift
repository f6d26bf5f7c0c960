import Hub
import Testing
import Wire

/// Writing to private channels: asked at the first message, answered for every one (wire-protocol A6, A7).
@Suite struct WriteRightTests {
    private static let ack = #"{"broadcast":{"ack":true},"presence":{"enabled":true,"key":"k"}}"#

    /// Slots 1 and 2 are in the private `realtime:a`.
    private func room(_ config: String = "{}", limits: HubLimits = HubLimits()) throws -> Stage {
        let stage = Stage(limits: limits)
        for slot in Slot(1)...2 {
            stage.connect(slot)
            try stage.joinPrivate("realtime:a", slot, config)
        }
        return stage
    }

    private func say(_ number: Int, ref: String? = nil) -> String {
        #"["1",\#(ref ?? "\"\(number)\""),"realtime:a","broadcast",{"n":\#(number)}]"#
    }

    private func track(_ ref: Int) -> String {
        #"["1","\#(ref)","realtime:a","presence",{"event":"track","payload":{"n":\#(ref)}}]"#
    }

    private func heard(_ number: Int) -> String { #"2 ⇐ [null,null,"realtime:a","broadcast",{"n":\#(number)}]"# }

    /// A refused broadcast has the original's code, too.
    private func reply(_ ref: Int, _ reason: String? = nil, code: String? = "unauthorized") -> String {
        let error = code.map { #""error":"\#($0)","# } ?? ""
        let payload =
            reason.map { #"{"status":"error","response":{\#(error)"reason":"\#($0)"}}"# }
            ?? #"{"status":"ok","response":{}}"#
        return #"1 ← ["1","\#(ref)","realtime:a","phx_reply",\#(payload)]"#
    }

    private static let denied = "Unauthorized: You do not have permissions to write to this Channel topic: a"
    private static let relay = "relay broadcast realtime:a private"

    // MARK: Broadcasts

    @Test func theFirstMessageAsksAndTheRestFollows() throws {
        let stage = try room()
        #expect(try stage.say(say(1), from: 1) == ["authorize anon write a"])
        let id = try #require(stage.asked.first)
        #expect(try stage.say(say(2), from: 1).isEmpty, "one question for all that waits")
        let kind3 = [3, 1, 1, 10, 1, 0, 1] + Array("13realtime:ae{}".utf8)
        #expect(try stage.say(kind3, from: 1).isEmpty)
        #expect(
            try stage.watch { $0.receiveAuthorization(id, is: .decided(.broadcast)) }
                == [heard(1), Self.relay, heard(2), Self.relay, "2 ⇐ #4 realtime:a e json {}", Self.relay])
        #expect(try stage.say(say(4), from: 1) == [heard(4), Self.relay], "the answer holds for the token's life")
        #expect(stage.hub.heldBytes == 0)
    }

    @Test func waitingMessagesAreAcknowledgedWhenTheyAreSent() throws {
        let stage = try room(Self.ack)
        try stage.say(say(5), from: 1)
        #expect(try stage.decide(.decided(.broadcast)) == [heard(5), Self.relay, reply(5)])
    }

    /// The messages that were refused, by why.
    private func refused(_ stage: Stage) -> [JoinFailure.Reason: Int] { stage.hub.counters.messagesRefused }

    @Test func everyDeniedMessageIsAnswered() throws {
        let stage = try room(Self.ack)
        try stage.say(say(5), from: 1)
        let id = try #require(stage.asked.first)
        try stage.say(say(6), from: 1)
        #expect(
            try stage.watch { $0.receiveAuthorization(id, is: .decided([])) }
                == [reply(5, Self.denied), reply(6, Self.denied)])
        #expect(try stage.say(say(7), from: 1) == [reply(7, Self.denied)])
        let kind3 = [3, 1, 1, 10, 1, 0, 0] + Array("18realtime:ae\u{1}".utf8)
        #expect(try stage.say(kind3, from: 1) == [reply(8, Self.denied)])
        #expect(try stage.say(say(9, ref: "null"), from: 1).isEmpty, "nobody could match it")
        #expect(refused(stage) == [.unauthorized: 5])
    }

    /// supabase-kt waits in its only read loop after an error reply, and the Elixir client gives its channel up.
    @Test func withoutAckNobodyIsAnsweredAndAllIsCounted() throws {
        let stage = try room()
        let key = ChannelKey(topic: "realtime:a", isPrivate: true)
        _ = stage.hub.channels(named: key.topic, limit: 9)
        try stage.say(say(5), from: 1)
        #expect(try stage.decide(.decided([])).isEmpty)
        #expect(try stage.say(say(6), from: 1).isEmpty)
        #expect(try stage.say(#"["1","7","realtime:a","broadcast",[]]"#, from: 1).isEmpty)
        #expect(refused(stage) == [.unauthorized: 3])
        let told = stage.hub.takeFailures()
        #expect(told.map(\.slot) == [1, 1, 1])
        #expect(told.allSatisfy { $0.failure.subject == .message })
        #expect(told[0].failure.sentence == "You do not have permissions to write to this Channel topic: a")
        let shown = stage.hub.channels(named: key.topic, limit: 9).flatMap(\.events)
        #expect(shown.map(\.isRefused) == [true, true, true])
        #expect(shown[0].excerpt == told[0].failure.sentence)
    }

    @Test func denialInVersionOne() throws {
        let stage = Stage()
        stage.connect(1, .v1)
        try stage.joinV1("realtime:a", 1, #"{"private":true,"broadcast":{"ack":true}}"#)
        try stage.decide(.decided(.all))
        try stage.say(#"{"topic":"realtime:a","event":"broadcast","payload":{},"ref":"5"}"#, from: 1)
        #expect(
            try stage.decide(.decided([]))
                == [
                    #"1 ← {"topic":"realtime:a","event":"phx_reply","payload":{"status":"error","response":{"error":"unauthorized","reason":"\#(Self.denied)"}},"ref":"5"}"#
                ])
    }

    @Test func anAnswerForAnotherExtensionIsNone() throws {
        let stage = try room(Self.ack)
        try stage.say(say(5), from: 1)
        #expect(try stage.decide(.decided(.presence)) == [reply(5, Self.denied)])
    }

    @Test func withoutAnAnswerTheyAreToComeAgain() throws {
        let stage = try room(Self.ack)
        let away = "UnableToConnectToProject: Realtime was unable to connect to the project database"
        try stage.say(say(5), from: 1)
        #expect(try stage.decide(.unavailable) == [reply(5, away, code: "unable_to_connect_to_project")])
        #expect(try stage.say(say(6), from: 1) == ["authorize anon write a"], "nothing is remembered of it")
        #expect(try stage.decide(.decided(.broadcast)).first == heard(6))
    }

    /// As by the original, which passes on what it does not read.
    @Test func whatIsNoObjectIsJudgedAsOthersAre() throws {
        let stage = try room(Self.ack)
        #expect(try stage.say(#"["1","5","realtime:a","broadcast",[]]"#, from: 1) == ["authorize anon write a"])
        #expect(try stage.decide(.decided([])) == [reply(5, Self.denied)])
    }

    // MARK: Presence

    @Test func trackingTakesARightOfItsOwn() throws {
        let stage = try room(Self.ack)
        #expect(try stage.say(track(5), from: 1) == ["authorize anon track a"])
        let said = try stage.decide(.decided(.presence))
        #expect(said.first?.hasPrefix("1,2 ⇐") == true)
        #expect(said.last == reply(5))
        #expect(try stage.say(say(6), from: 1) == ["authorize anon write a"])
        #expect(try stage.decide(.decided([])) == [reply(6, Self.denied)])
        #expect(try stage.say(track(7), from: 1).last == reply(7))
    }

    @Test func deniedTracking() throws {
        let stage = try room(Self.ack)
        let denied = "Unauthorized: You do not have permissions to track presence in this Channel topic: a"
        try stage.say(track(5), from: 1)
        #expect(try stage.decide(.decided([])) == [reply(5, denied, code: nil)])
        #expect(try stage.say(track(6), from: 1) == [reply(6, denied, code: nil)])
        // To take oneself away takes no right.
        #expect(try stage.say(#"["1","7","realtime:a","presence",{"event":"untrack"}]"#, from: 1) == [reply(7)])
    }

    @Test func theOrderOfAMembersMessagesIsKept() throws {
        let stage = try room(Self.ack)
        try stage.say(say(5), from: 1)
        let broadcast = try #require(stage.asked.first)
        try stage.say(track(6), from: 1)
        try stage.say(#"["1","7","realtime:a","presence",{"event":"untrack"}]"#, from: 1)
        try stage.say(say(8), from: 1)
        let first = try stage.watch { $0.receiveAuthorization(broadcast, is: .decided(.broadcast)) }
        #expect(first == [heard(5), Self.relay, reply(5), "authorize anon track a"])
        let rest = try stage.decide(.decided(.presence))
        #expect(rest.filter { $0.hasPrefix("1 ←") } == [reply(6), reply(7), reply(8)])
        #expect(rest.contains(heard(8)))
    }

    // MARK: Before the join is answered

    @Test func whatComesBeforeTheJoinIsAnsweredWaits() throws {
        let stage = Stage()
        stage.connect(1)
        stage.connect(2)
        try stage.joinPrivate("realtime:a", 2)
        try stage.join("realtime:a", 1, #"{"private":true}"#)
        let join = try #require(stage.asked.first)
        #expect(try stage.say(say(5), from: 1).isEmpty)
        let said = try stage.watch { $0.receiveAuthorization(join, is: .decided(.all)) }
        #expect(said.count == 2)
        #expect(said.last == "authorize anon write a")
        #expect(try stage.decide(.decided(.broadcast)).first == heard(5))
    }

    @Test func aDeniedJoinDeniesWhatWaits() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1, #"{"private":true}"#)
        let join = try #require(stage.asked.first)
        try stage.say(say(5), from: 1)
        let said = try stage.watch { $0.receiveAuthorization(join, is: .decided([])) }
        #expect(said.count == 1)
        #expect(said.first?.contains("Unauthorized") == true)
        #expect(refused(stage) == [.unauthorized: 1])
        #expect(stage.hub.heldBytes == 0)
    }

    // MARK: Limits and ends

    @Test func soManyMayWait() throws {
        var limits = HubLimits()
        limits.heldPerMember = 3
        let stage = try room(Self.ack, limits: limits)
        try stage.say(say(5), from: 1)
        let id = try #require(stage.asked.first)
        for number in 6...7 { #expect(try stage.say(say(number), from: 1).isEmpty) }
        #expect(
            try stage.say(say(8), from: 1) == [
                reply(
                    8, "AuthorizationPending: Too many messages wait for the permission to write to this Channel",
                    code: "AuthorizationPending")
            ])
        #expect(
            try stage.watch { $0.receiveAuthorization(id, is: .decided(.broadcast)) }.filter { $0.hasPrefix("2 ⇐") }
                == [heard(5), heard(6), heard(7)])
        #expect(try stage.say(say(9), from: 1).first == heard(9))
    }

    @Test func soManyBytesMayWait() throws {
        var limits = HubLimits()
        limits.payloadBytes = 30
        limits.heldBytes = 60
        let stage = try room(Self.ack, limits: limits)
        stage.connect(3)
        try stage.joinPrivate("realtime:a", 3, Self.ack)
        // A member: one payload's worth; the first is kept whatever it takes.
        let long = #"["1","5","realtime:a","broadcast",{"text":"12345678901234567"}]"#
        #expect(try stage.say(long, from: 1).count == 1)
        #expect(try stage.say(say(6), from: 1).first?.contains("AuthorizationPending") == true)
        // All of them together: the hub's.
        #expect(try stage.say(long, from: 2).first?.contains("AuthorizationPending") == true)
        #expect(try stage.say(say(6), from: 2).count == 1)
        #expect(stage.hub.heldBytes > 30)
        for slot in Slot(1)...3 { try stage.disconnect(slot) }
        #expect(stage.hub.heldBytes == 0)
        #expect(stage.hub.openQuestions.isEmpty)
    }

    @Test(arguments: ["leave", "rejoin", "expiry"]) func whatWaitsIsAnsweredAtTheEnd(_ ending: String) throws {
        let stage = Stage()
        stage.connect(1, expiresAt: 1010)
        try stage.joinPrivate("realtime:a", 1, Self.ack)
        try stage.say(say(5), from: 1)
        let late = try #require(stage.asked.first)
        let said =
            switch ending {
            case "leave": try stage.say(#"["1","9","realtime:a","phx_leave",{}]"#, from: 1)
            case "rejoin": try stage.join("realtime:a", 1, ref: "9")
            default: try stage.tick(after: 10_000)
            }
        #expect(
            said.first
                == (ending == "expiry"
                    ? reply(5, "InvalidJWTToken: Token has expired 0 seconds ago", code: "InvalidJWTToken")
                    : reply(5, "unmatched topic", code: "unmatched_topic"))
        )
        #expect(try stage.watch { $0.receiveAuthorization(late, is: .decided(.all)) }.isEmpty)
        #expect(stage.hub.heldBytes == 0)
    }
}
