import Hub
import Testing
import Wire

/// When joins are answered, and with what, where something that they wait for takes long.
@Suite struct AnswerTimeTests {
    private static let todos = #"{"event":"*","schema":"public","table":"todos"}"#

    private func config(_ options: String? = nil) -> String {
        #"{"postgres_changes":[\#(Self.todos)]\#(options.map { #","postgres_changes_options":\#($0)"# } ?? "")}"#
    }

    /// A join of slot 1 that waits for the feed.
    private func waiting(_ options: String? = nil, subject: String? = nil) throws -> (Stage, ChangeGroupID) {
        let stage = Stage(sessions: .ofTheFirst)
        try stage.tick(after: 10_000)
        stage.connect(1, subject: subject)
        try stage.join("realtime:a", 1, config(options))
        return (stage, try #require(stage.subscribed.first))
    }

    private func isAnswered(_ lines: [String]) -> Bool { lines.contains { $0.contains("phx_reply") } }

    private func refusal(_ reason: String) -> String {
        #"1 ← ["1","1","realtime:a","phx_reply",{"status":"error","response":{"reason":"\#(reason)"}}]"#
    }

    // MARK: What comes behind a join

    private func track(_ ref: Int) -> String {
        #"["1","\#(ref)","realtime:a","presence",{"event":"track","payload":{"n":\#(ref)}}]"#
    }

    /// supabase-realtime-rs 3de2771 tracks as soon as it has asked to join.
    @Test func whoTracksBehindAJoinIsShownWhenItIsAnswered() throws {
        let (stage, group) = try waiting()
        #expect(try stage.say(track(2), from: 1).isEmpty)
        #expect(
            try stage.say(track(3), from: 1)
                == [#"1 ← ["1","2","realtime:a","phx_reply",{"status":"ok","response":{}}]"#], "the last one counts")
        let lines = try stage.watch { $0.changeSubscription(group, is: .live) }
        let shown = lines.firstIndex { $0.contains("presence_diff") && $0.contains(#""n":3"#) }
        let answered = lines.firstIndex { $0.hasPrefix(#"1 ← ["1","1","realtime:a","phx_reply""#) }
        #expect(try #require(answered) < #require(shown), "\(lines)")
        #expect(lines.contains { $0.hasPrefix(#"1 ← ["1","3","realtime:a","phx_reply",{"status":"ok""#) }, "\(lines)")
        #expect(!lines.contains { $0.contains(#""n":2"#) })
    }

    @Test func norIsItForgottenWhereTheJoinIsRefused() throws {
        let (stage, group) = try waiting(#"{"wait":true}"#)
        #expect(try stage.say(track(2), from: 1).isEmpty)
        let lines = try stage.watch { $0.changeSubscription(group, is: .failed("no such column")) }
        let refused = #"1 ← ["1","2","realtime:a","phx_reply",{"status":"error""#
        #expect(lines.contains { $0.hasPrefix(refused) }, "\(lines)")
        #expect(!lines.contains { $0.contains("presence") })
    }

    // MARK: postgres_changes_options (supabase/realtime PR 2109)

    @Test func whoWaitsIsRefusedWhatIsNotServed() throws {
        let (stage, group) = try waiting(#"{"wait":true}"#)
        #expect(
            try stage.watch { $0.changeSubscription(group, is: .failed("no such column")) }
                == [refusal("RealtimeDisabledForConfiguration: no such column"), "unsubscribe 0.\(group.serial)"])
        #expect(stage.hub.counters.joinFailures[.rowChanges] == 1)
    }

    @Test func norIsItServedInPart() throws {
        let (stage, group) = try waiting(#"{"wait":"true"}"#)
        let bad = SubscriptionComplaint("no such table", isError: true)
        let lines = try stage.watch { $0.changeSubscription(group, is: .partly([bad])) }
        #expect(lines.first == refusal("RealtimeDisabledForConfiguration: no such table"))
    }

    /// Of a group that others are in already, the fault is known at once.
    @Test func whatIsKnownToBeBadIsRefusedAtOnce() throws {
        let (stage, group) = try waiting()
        _ = try stage.watch { $0.changeSubscription(group, is: .failed("no such column")) }
        stage.connect(2)
        let lines = try stage.join("realtime:a", 2, config(#"{"wait":true}"#))
        #expect(lines.count == 1 && lines[0].contains("RealtimeDisabledForConfiguration: no such column"), "\(lines)")
    }

    @Test func whatIsServedIsAnsweredAsEver() throws {
        let (stage, group) = try waiting(#"{"wait":true}"#)
        let lines = try stage.watch { $0.changeSubscription(group, is: .live) }
        #expect(
            lines.count == 2 && lines[0].contains(#""status":"ok""#) && lines[1].contains("Subscribed to"), "\(lines)")
    }

    @Test(arguments: [
        (#"{"wait":true}"#, 15_000), (#"{"wait":true,"timeout":300}"#, 300),
        (#"{"wait":true,"timeout":99000}"#, 20_000),
        (#"{"wait":true,"timeout":-1}"#, 15_000), (#"{"wait":true,"timeout":"5"}"#, 15_000),
    ]) func theWaitEnds(_ options: String, _ milliseconds: Int64) throws {
        let (stage, group) = try waiting(options)
        // A database that is away may be back in time.
        #expect(try stage.watch { $0.changeSubscription(group, is: .unavailable) }.isEmpty)
        #expect(try !isAnswered(stage.tick(after: milliseconds - 1)))
        let lines = try stage.tick(after: 1)
        let sentence = "Timed out after \(milliseconds)ms waiting for the postgres_changes subscription"
        #expect(lines.first == refusal("PostgresChangesSubscribeTimeout: \(sentence)"), "\(lines)")
    }

    @Test func theDatabaseMayBeBackInTime() throws {
        let (stage, group) = try waiting(#"{"wait":true}"#)
        _ = try stage.watch { $0.changeSubscription(group, is: .unavailable) }
        try stage.tick(after: 5000)
        #expect(try isAnswered(stage.watch { $0.changeSubscription(group, is: .live) }))
    }

    /// Without row changes there is nothing to wait for.
    @Test(arguments: [#"{"postgres_changes_options":{"wait":true}}"#, #"{"postgres_changes_options":7}"#])
    func withoutRowChangesNobodyWaits(_ config: String) throws {
        let stage = Stage()
        stage.connect(1)
        #expect(try isAnswered(stage.join("realtime:a", 1, config)))
    }

    // MARK: Answers that are late

    /// Dart's realtime_client 2.13 leaves for good if the answer takes about two seconds after a reconnect.
    @Test func theAnswerWaitsForNoMoreThanAMomentAndWhatIsWrittenSinceFollows() throws {
        let (stage, group) = try waiting(subject: "ann")
        _ = try stage.watch { $0.deliverEvent(.boundary(3)) }
        #expect(try !isAnswered(stage.tick(after: 1499)))
        let late = try stage.tick(after: 1)
        #expect(late.count == 1 && isAnswered(late), "\(late)")
        let live = try stage.watch { $0.changeSubscription(group, is: .live) }
        #expect(live == ["recover 0.\(group.serial) mark(3)"])
        #expect(try stage.catchUp().contains { $0.contains("Subscribed to PostgreSQL") })
    }

    @Test func whatTheFeedReadsFollowsTheAnswer() throws {
        let (stage, group) = try waiting(subject: "ann")
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        try stage.disconnect(1)
        stage.connect(2, subject: "ann")
        try stage.join("realtime:a", 2, config())
        let again = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(again, is: .live) }
        let id = try #require(stage.recoveries.first)
        let late = try stage.tick(after: 1500)
        #expect(late.count == 1 && isAnswered(late), "\(late)")
        let change = ChangeDelivery(group: again, operation: .insert, ids: [1], data: [0x37], cursor: "x.1")
        let missed = try stage.watch { hub in
            hub.deliverEvent(.recovery(id, .began(.resumed)))
            hub.deliverEvent(.recovery(id, .changes([change])))
            hub.deliverEvent(.recovery(id, .caughtUp(cursor: "c")))
        }
        #expect(missed[0].contains("postgres_changes") && missed[1].contains("Subscribed"), "\(missed)")
    }

    @Test func rightsAreNotAnsweredLate() throws {
        let stage = Stage(sessions: .ofTheFirst)
        stage.connect(1)
        try stage.join("realtime:a", 1, #"{"private":true}"#)
        let id = try #require(stage.asked.first)
        #expect(try !isAnswered(stage.tick(after: 3000)))
        #expect(try isAnswered(stage.watch { $0.receiveAuthorization(id, is: .decided(.all)) }))
    }

    // MARK: The first token (realtime-csharp 7.3)

    private func join(_ stage: Stage) throws -> ChangeGroupID {
        stage.connect(1, .v1)
        try stage.joinV1("realtime:a", 1, config())
        let group = try #require(stage.subscribed.first)
        let lines = try stage.watch { $0.changeSubscription(group, is: .failed("permission denied")) }
        #expect(lines.count == 1 && isAnswered(lines), "no system error: \(lines)")
        return group
    }

    private func token(_ text: String) -> String {
        #"{"topic":"realtime:a","event":"access_token","payload":{"access_token":"\#(text)"},"ref":"2"}"#
    }

    @Test func whoSendsItsTokenBehindTheAnswerIsJudgedByIt() throws {
        let stage = Stage()
        _ = try join(stage)
        #expect(try !stage.say(token("good authenticated 9000 ann"), from: 1).contains { $0.contains("system") })
        let user = try #require(stage.subscribed.first)
        let lines = try stage.watch { $0.changeSubscription(user, is: .live) } + stage.catchUp()
        let told = lines.filter { $0.contains("system") }
        #expect(told.count == 1 && told[0].contains("Subscribed to PostgreSQL"), "\(lines)")
        #expect(try stage.tick(after: 3000).isEmpty)
    }

    @Test func whoSendsNoneIsToldAMomentLater() throws {
        let stage = Stage()
        _ = try join(stage)
        #expect(try stage.tick(after: 1999).isEmpty)
        let lines = try stage.tick(after: 1)
        #expect(lines.count == 1 && lines[0].contains("permission denied"), "\(lines)")
    }

    @Test func aTokenThatSaysNothingNewEndsTheMoment() throws {
        let stage = Stage()
        _ = try join(stage)
        let lines = try stage.say(token("good anon 10000"), from: 1)
        #expect(lines.count == 1 && lines[0].contains("permission denied"), "\(lines)")
    }

    @Test func whatFailsOfTheUserIsTold() throws {
        let stage = Stage()
        _ = try join(stage)
        try stage.say(token("good authenticated 9000 ann"), from: 1)
        let user = try #require(stage.subscribed.first)
        let lines = try stage.watch { $0.changeSubscription(user, is: .failed("not even you")) }
        #expect(lines.count == 1 && lines[0].contains("not even you"), "\(lines)")
    }

    @Test func whoLeavesMeanwhileIsToldNothing() throws {
        let stage = Stage()
        _ = try join(stage)
        try stage.say(#"{"topic":"realtime:a","event":"phx_leave","payload":{},"ref":"3"}"#, from: 1)
        #expect(try stage.tick(after: 3000).isEmpty)
    }
}
