import Hub
import Testing
import Wire

/// Joins of private channels: what is asked, when they are answered, who hears what (wire-protocol A4, A6, A9).
@Suite struct PrivateJoinTests {
    private static let ok =
        #"1 ← ["1","1","realtime:a","phx_reply",{"status":"ok","response":{"postgres_changes":[]}}]"#
    private static let changes = #""postgres_changes":[{"event":"*","schema":"public","table":"t"}]"#
    private static let secret = ChannelKey(topic: "realtime:a", isPrivate: true)

    private func stage(_ config: String = #"{"private":true}"#, _ version: ProtocolVersion = .v2) throws -> Stage {
        let stage = Stage()
        stage.connect(1, version)
        _ = version == .v2 ? try stage.join("realtime:a", 1, config) : try stage.joinV1("realtime:a", 1, config)
        return stage
    }

    private func error(_ reason: String) -> [String] {
        [#"1 ← ["1","1","realtime:a","phx_reply",{"status":"error","response":{"reason":"\#(reason)"}}]"#]
    }

    // MARK: The answer

    @Test func theReplyWaitsForThePolicies() throws {
        let stage = Stage()
        stage.connect(1)
        #expect(try stage.join("realtime:a", 1, #"{"private":true}"#) == ["authorize anon read a"])
        let id = try #require(stage.asked.first)
        #expect(
            try stage.watch { $0.publishMessage(.text(Array("{}".utf8)), to: Self.secret) } == [
                "relay broadcast realtime:a private"
            ])
        #expect(try stage.watch { $0.receiveAuthorization(id, is: .decided(.all)) } == [Self.ok])
        #expect(try stage.watch { $0.publishMessage(.text(Array("{}".utf8)), to: Self.secret) }.count == 2)
    }

    @Test func whoMayReadNothingIsRefused() throws {
        let stage = try stage()
        #expect(
            try stage.decide(.decided([]))
                == error("Unauthorized: You do not have permissions to read from this Channel topic: a"))
        #expect(stage.hub.channelCount == 0)
    }

    @Test func inVersionOneToo() throws {
        let stage = try stage(#"{"private":true}"#, .v1)
        #expect(
            try stage.decide(.decided([]))
                == [
                    #"1 ← {"topic":"realtime:a","event":"phx_reply","payload":{"status":"error","response":{"reason":"Unauthorized: You do not have permissions to read from this Channel topic: a"}},"ref":"1"}"#
                ])
    }

    @Test func withoutAnAnswerNobodyIsLetIn() throws {
        let stage = try stage()
        #expect(
            try stage.decide(.unavailable)
                == error("UnableToConnectToProject: Realtime was unable to connect to the project database"))
        #expect(stage.hub.channelCount == 0)
        #expect(stage.hub.openQuestions.isEmpty)
    }

    @Test func noRoleIsBeyondThePolicies() throws {
        let stage = Stage()
        stage.connect(1, role: "service_role")
        #expect(try stage.join("realtime:a", 1, #"{"private":true}"#) == ["authorize service_role read a"])
        #expect(try stage.decide(.decided([])).first?.contains("Unauthorized") == true)
    }

    // MARK: With row changes

    @Test(arguments: [true, false]) func theLastAnswerCompletesTheJoin(_ policiesFirst: Bool) throws {
        let stage = Stage()
        stage.connect(1)
        let said = try stage.join("realtime:a", 1, #"{"private":true,\#(Self.changes)}"#)
        #expect(said.count == 2, "the feed and the policies are asked at the same time")
        let (group, id) = (try #require(stage.subscribed.first), try #require(stage.asked.first))
        let change = ChangeDelivery(group: group, operation: .insert, ids: [1], data: Array("{}".utf8))
        let steps: [(Hub) -> Void] = [
            { $0.receiveAuthorization(id, is: .decided(.all)) }, { $0.changeSubscription(group, is: .live) },
        ]
        #expect(try stage.watch(steps[policiesFirst ? 0 : 1]).isEmpty)
        #expect(try stage.watch { $0.deliverEvent(.change(change)) }.isEmpty)
        let answer = try stage.watch(steps[policiesFirst ? 1 : 0])
        #expect(answer.count == 2)
        #expect(answer[0].contains(#""status":"ok","response":{"postgres_changes":[{"#))
        #expect(answer[1].contains("Subscribed to PostgreSQL"))
        #expect(try stage.watch { $0.deliverEvent(.change(change)) }.count == 1)
    }

    @Test(arguments: [true, false]) func denialGivesTheSubscriptionUp(_ isLive: Bool) throws {
        let stage = try stage(#"{"private":true,\#(Self.changes)}"#)
        let (group, id) = (try #require(stage.subscribed.first), try #require(stage.asked.first))
        if isLive { _ = try stage.watch { $0.changeSubscription(group, is: .live) } }
        let said = try stage.watch { $0.receiveAuthorization(id, is: .decided([])) }
        #expect(said.first?.contains("Unauthorized") == true)
        #expect(said.contains("unsubscribe \(group.loop).\(group.serial)"))
        #expect(try stage.watch { $0.changeSubscription(group, is: .live) }.isEmpty)
        #expect(stage.hub.channelCount == 0)
    }

    @Test func aFeedWithoutADatabaseEndsTheQuestion() throws {
        let stage = try stage(#"{"private":true,\#(Self.changes)}"#)
        let (group, id) = (try #require(stage.subscribed.first), try #require(stage.asked.first))
        let said = try stage.watch { $0.changeSubscription(group, is: .unavailable) }
        #expect(said.first?.contains("UnableToConnectToProject") == true)
        #expect(stage.hub.openQuestions.isEmpty)
        #expect(try stage.watch { $0.receiveAuthorization(id, is: .decided(.all)) }.isEmpty)
        #expect(stage.hub.channelCount == 0)
    }

    // MARK: Late answers

    @Test func lateAnswersFindNobody() throws {
        for ending in ["leave", "disconnect", "rejoin", "public"] {
            let stage = try stage()
            let late = try #require(stage.asked.first)
            switch ending {
            case "leave": try stage.say(#"["1","2","realtime:a","phx_leave",{}]"#, from: 1)
            case "disconnect":
                try stage.disconnect(1)
                stage.connect(1)
            case "rejoin": try stage.join("realtime:a", 1, ref: "7", #"{"private":true}"#)
            default: try stage.join("realtime:a", 1, ref: "7")
            }
            for outcome in [AuthorizationOutcome.decided(.all), .decided([]), .unavailable] {
                #expect(try stage.watch { $0.receiveAuthorization(late, is: outcome) }.isEmpty)
            }
            #expect(
                try stage.watch { $0.publishMessage(.text(Array("{}".utf8)), to: Self.secret) }.count == 1, "\(ending)")
        }
    }

    @Test func anAnswerCountsOnce() throws {
        let stage = try stage()
        let id = try #require(stage.asked.first)
        _ = try stage.decide(.decided(.all))
        #expect(try stage.watch { $0.receiveAuthorization(id, is: .decided([])) }.isEmpty)
        #expect(
            try stage.watch { $0.receiveAuthorization(AuthorizationID(loop: 0, serial: 999), is: .unavailable) }.isEmpty
        )
        #expect(stage.hub.channelCount == 1)
    }

    @Test func expiryReachesWaitingJoins() throws {
        let stage = Stage()
        stage.connect(1, expiresAt: 1010)
        try stage.join("realtime:a", 1, #"{"private":true}"#)
        let id = try #require(stage.asked.first)
        #expect(try stage.tick(after: 10_000).last?.contains("phx_error") == true)
        #expect(try stage.watch { $0.receiveAuthorization(id, is: .decided(.all)) }.isEmpty)
        #expect(stage.hub.channelCount == 0)
    }

    /// A channel is one object for all who are in it, also while some of them wait.
    @Test func aWaitingMemberKeepsTheChannel() throws {
        let stage = Stage()
        stage.connect(1)
        stage.connect(2)
        try stage.join("realtime:a", 1, #"{"private":true}"#)
        let waiting = try #require(stage.asked.first)
        try stage.joinPrivate("realtime:a", 2)
        try stage.say(#"["1","2","realtime:a","phx_leave",{}]"#, from: 2)
        _ = try stage.watch { $0.receiveAuthorization(waiting, is: .decided(.all)) }
        try stage.joinPrivate("realtime:a", 2)
        #expect(
            try stage.watch { $0.publishMessage(.text(Array("{}".utf8)), to: Self.secret) }.first?.hasPrefix("1,2 ⇐")
                == true)
    }

    // MARK: One of the two

    private static let presence = #"{"presence":{"enabled":true,"key":"k"}}"#

    @Test func whoReadsBroadcastsAloneSeesNoPresence() throws {
        let stage = Stage()
        stage.connect(1)
        stage.connect(2)
        #expect(try stage.joinPrivate("realtime:a", 1, Self.presence, reading: .broadcast) == [Self.ok])
        try stage.joinPrivate("realtime:a", 2, Self.presence)
        try stage.say(#"["1","2","realtime:a","presence",{"event":"track","payload":{}}]"#, from: 2)
        #expect(
            try stage.decide(.decided(.presence)).filter { $0.contains("presence_diff") }.map { $0.prefix(3) } == [
                "2 ⇐"
            ])
        // To track brings it no sight of the others.
        try stage.say(#"["1","2","realtime:a","presence",{"event":"track","payload":{}}]"#, from: 1)
        #expect(
            try stage.decide(.decided(.presence)).filter { $0.contains("presence_diff") }.map { $0.prefix(3) } == [
                "2 ⇐"
            ])
        #expect(
            try stage.watch { $0.publishMessage(.text(Array("{}".utf8)), to: Self.secret) }.first?.hasPrefix("1,2 ⇐")
                == true)
    }

    @Test func whoReadsPresenceAloneHearsNoBroadcasts() throws {
        let stage = Stage()
        stage.connect(1)
        stage.connect(2)
        let said = try stage.joinPrivate("realtime:a", 1, Self.presence, reading: .presence)
        #expect(said.count == 2)
        #expect(said.last?.contains("presence_state") == true)
        try stage.joinPrivate("realtime:a", 2)
        #expect(
            try stage.watch { $0.publishMessage(.text(Array("{}".utf8)), to: Self.secret) }.first?.hasPrefix("2 ⇐")
                == true)
        try stage.say(#"["1","2","realtime:a","broadcast",{}]"#, from: 2)
        #expect(try stage.decide(.decided(.broadcast)) == ["relay broadcast realtime:a private"])
        try stage.say(#"["1","3","realtime:a","presence",{"event":"track","payload":{}}]"#, from: 2)
        #expect(try stage.decide(.decided(.presence)).contains { $0.hasPrefix("1,2 ⇐") })
        try stage.disconnect(2)
        try stage.disconnect(1)
        #expect(stage.hub.channelCount == 0)
    }
}
