import Hub
import Testing
import Wire

/// Tokens that are refreshed too late: a channel waits for them, and tells nothing meanwhile.
@Suite struct TokenGraceTests {
    private static let config = """
        {"broadcast":{"self":true,"ack":true},"presence":{"enabled":true},\
        "postgres_changes":[{"event":"*","schema":"public","table":"todos"}]}
        """

    /// Slot 1's token ends at second 1010; slot 2's does not.
    private func stage(_ config: String = TokenGraceTests.config, grace: Int = 30) throws -> (Stage, ChangeGroupID) {
        var limits = HubLimits()
        limits.tokenGrace = grace
        let stage = Stage(limits: limits, sessions: .ofTheFirst, history: HistoryStore(window: 120_000))
        stage.connect(1, subject: "ann", expiresAt: 1010)
        stage.connect(2, subject: "bob")
        try stage.join("realtime:a", 1, config)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        try stage.join("realtime:a", 2, config)
        _ = try stage.watch { $0.deliverEvent(.boundary(3)) }
        return (stage, group)
    }

    private func change(_ group: ChangeGroupID, _ text: String, cursor: String) -> FeedEvent {
        .change(ChangeDelivery(group: group, operation: .insert, ids: [1], data: Array(text.utf8), cursor: cursor))
    }

    /// What slot 1 gets.
    private func ann(_ lines: [String]) -> [String] {
        lines.filter { $0.split(separator: " ").first?.split(separator: ",").contains("1") ?? false }
    }

    private let fresh = #"["1","8","realtime:a","access_token",{"access_token":"good anon 9000 ann"}]"#

    @Test func nothingIsToldUntilAFreshTokenComes() throws {
        let (stage, group) = try stage()
        let ended = ann(try stage.tick(after: 10_000))
        #expect(ended.count == 1 && ended[0].contains("Token has expired 0 seconds ago"))
        #expect(ann(try stage.watch { $0.deliverEvent(self.change(group, "1", cursor: "x.1")) }).isEmpty)
        let said = try stage.say(#"["1","5","realtime:a","broadcast",{"event":"e"}]"#, from: 2)
        #expect(!said.isEmpty && ann(said).isEmpty)
        #expect(ann(try stage.say(#"["1","6","realtime:a","presence",{"event":"track"}]"#, from: 2)).isEmpty)
        #expect(ann(try stage.tick(after: 20_000)).isEmpty, "once is enough")
        #expect(stage.recoveries.isEmpty)
    }

    /// An error reply that it did not ask for makes supabase-kt deaf. The operator is told of each.
    @Test func whatItWantsMeanwhileIsRefused() throws {
        let (stage, _) = try stage()
        try stage.tick(after: 10_000)
        for (number, event) in ["broadcast", "presence", "app_state"].enumerated() {
            let lines = try stage.say(#"["1","5","realtime:a","\#(event)",{"event":"track"}]"#, from: 1)
            #expect(lines.count == (event == "broadcast" ? 1 : 0), "\(lines)")
            #expect(lines.allSatisfy { $0.contains("Token has expired") })
            #expect(stage.hub.counters.messagesRefused[.token] == number + 1)
            #expect(stage.hub.takeFailures().map(\.failure.sentence) == ["Token has expired 0 seconds ago"])
        }
        #expect(try stage.say(#"["1","6","realtime:a","phx_leave",{}]"#, from: 1).count == 2)
    }

    @Test func aFreshTokenGoesOnWithWhatWasMissed() throws {
        let (stage, group) = try stage()
        try stage.tick(after: 10_000)
        _ = try stage.watch { $0.deliverEvent(self.change(group, "1", cursor: "x.1")) }
        _ = try stage.watch { $0.deliverEvent(.boundary(4)) }
        // The socket lives, and its answers say nothing of what it was not sent.
        let ping = try #require(stage.hub.acknowledgementPing(for: 1))
        stage.hub.receivePong(try ping.shown().dropFirst(5).utf8, from: 1)
        let lines = try stage.say(fresh, from: 1)
        #expect(lines.contains { $0.hasPrefix("recover") && $0.hasSuffix("mark(3)") }, "\(lines)")
        #expect(lines.contains { $0.contains("presence_state") })
        #expect(!lines.contains { $0.contains("unmatched") || $0.contains("phx_error") })
        try stage.catchUp()
        #expect(!ann(try stage.say(#"["1","5","realtime:a","broadcast",{"event":"e"}]"#, from: 2)).isEmpty)
        #expect(!ann(try stage.watch { $0.deliverEvent(self.change(group, "2", cursor: "x.2")) }).isEmpty)
        #expect(try stage.tick(after: 60_000).isEmpty, "its time is that of the fresh token")
    }

    @Test func withoutOneTheChannelEnds() throws {
        let (stage, _) = try stage()
        try stage.tick(after: 10_000)
        try stage.tick(after: 29_000)
        #expect(stage.hub.counters.memberships == 2)
        let lines = ann(try stage.tick(after: 1000))
        #expect(lines.count == 1 && lines[0].contains("phx_error"))
        #expect(stage.hub.counters.memberships == 1)
        // And what it missed waits for it, as for anybody.
        stage.connect(3, subject: "ann")
        try stage.join("realtime:a", 3, Self.config)
        #expect(ReturningTests.point(stage) == .mark(0) || ReturningTests.point(stage) == .mark(3))
    }

    @Test func aBadTokenEndsItAtOnce() throws {
        let (stage, _) = try stage()
        try stage.tick(after: 10_000)
        let lines = try stage.say(fresh.replacing("good", with: "bad"), from: 1)
        #expect(lines.contains { $0.contains("phx_error") })
        #expect(stage.hub.counters.memberships == 1)
    }

    /// Some clients send with each heartbeat the token that they have.
    @Test func anExpiredTokenEndsNoLapse() throws {
        let (stage, group) = try stage()
        let stale = fresh.replacing("9000", with: "1010")
        try stage.tick(after: 10_000)
        for _ in 1...3 { #expect(try stage.say(stale, from: 1).isEmpty) }
        _ = try stage.watch { $0.deliverEvent(self.change(group, "1", cursor: "x.1")) }
        _ = try stage.watch { $0.deliverEvent(.boundary(4)) }
        try stage.tick(after: 29_000)
        #expect(try stage.say(stale, from: 1).isEmpty)
        let lines = try stage.say(fresh, from: 1)
        #expect(lines.contains { $0.hasPrefix("recover") && $0.hasSuffix("mark(3)") }, "\(lines)")
        #expect(stage.hub.counters.memberships == 2)
    }

    /// The grace is none for whoever goes on with an expired one.
    @Test func expiredTokensDoNotProlongALapse() throws {
        let (stage, _) = try stage()
        try stage.tick(after: 10_000)
        try stage.tick(after: 29_000)
        try stage.say(fresh.replacing("9000", with: "1011"), from: 1)
        #expect(ann(try stage.tick(after: 1000)).contains { $0.contains("phx_error") })
    }

    /// Whoever says that its token is an expired one may mean another user's: it hears nothing more as the one that it was.
    @Test func anExpiredTokenBeginsALapse() throws {
        let (stage, group) = try stage()
        let before = fresh.replacing("9000", with: "1010")
        let lines = try stage.say(fresh.replacing("9000", with: "900"), from: 1)
        #expect(lines.count == 1 && lines[0].contains("Token has expired 100 seconds ago"), "\(lines)")
        #expect(ann(try stage.watch { $0.deliverEvent(self.change(group, "1", cursor: "x.1")) }).isEmpty)
        #expect(ann(try stage.say(#"["1","5","realtime:a","presence",{"event":"track"}]"#, from: 1)).isEmpty)
        // The token that it had before goes on, too.
        #expect(try stage.say(before, from: 1).contains { $0.hasPrefix("recover") })
        try stage.catchUp()
        #expect(!ann(try stage.watch { $0.deliverEvent(self.change(group, "2", cursor: "x.2")) }).isEmpty)
        try stage.say(fresh.replacing("9000", with: "900"), from: 1)
        try stage.tick(after: 29_000)
        #expect(stage.hub.counters.memberships == 2)
        #expect(ann(try stage.tick(after: 1000)).contains { $0.contains("phx_error") })
    }

    /// What waits for the policies when the token runs out is what the member wants meanwhile, too.
    @Test func whatWaitsIsRefusedWithoutAnAnswer() throws {
        var limits = HubLimits()
        limits.tokenGrace = 30
        let stage = Stage(limits: limits)
        stage.connect(1, subject: "ann", expiresAt: 1010)
        try stage.joinPrivate("realtime:a", 1)
        #expect(ann(try stage.say(#"["1","5","realtime:a","presence",{"event":"track"}]"#, from: 1)).isEmpty)
        #expect(ann(try stage.tick(after: 10_000)).count == 1)
        #expect(stage.hub.counters.messagesRefused[.token] == 1)
    }

    /// Nor does what was asked for a token that came before.
    @Test func anExpiredTokenInAPrivateChannel() throws {
        var limits = HubLimits()
        limits.tokenGrace = 30
        let stage = Stage(limits: limits)
        stage.connect(1, subject: "ann", expiresAt: 5000)
        try stage.joinPrivate("realtime:a", 1)
        let key = ChannelKey(topic: "realtime:a", isPrivate: true)
        func hears() throws -> Bool {
            !ann(try stage.watch { $0.publishMessage(.text(Array(#"{"event":"e"}"#.utf8)), to: key) }).isEmpty
        }
        try stage.say(fresh, from: 1)
        let question = try #require(stage.asked.last)
        try stage.say(fresh.replacing("9000", with: "900"), from: 1)
        _ = try stage.watch { $0.receiveAuthorization(question, is: .decided(.all)) }
        #expect(try !hears())
        for token in [fresh.replacing("9000", with: "5000"), fresh] {
            try stage.say(token, from: 1)
            let question = try #require(stage.asked.last)
            #expect(try !hears() || token == fresh)
            _ = try stage.watch { $0.receiveAuthorization(question, is: .decided(.all)) }
            #expect(try hears())
        }
    }

    @Test func withoutGraceItEndsAtTheSecond() throws {
        let (stage, _) = try stage(grace: 0)
        #expect(try stage.tick(after: 10_000).contains { $0.contains("phx_error") })
    }

    /// What is kept of broadcasts comes, too.
    @Test func keptMessagesAreBrought() throws {
        let config = Self.config.replacing(#""ack":true"#, with: #""ack":true,"history":true"#)
        let (stage, _) = try stage(config)
        try stage.tick(after: 10_000)
        #expect(ann(try stage.say(#"["1","5","realtime:a","broadcast",{"event":"kept"}]"#, from: 2)).isEmpty)
        let lines = ann(try stage.say(fresh, from: 1))
        #expect(lines.filter { $0.contains("kept") }.count == 1)
    }

    /// What is kept of broadcasts is remembered for the recovery window: nobody is let wait any longer for it.
    @Test(arguments: [(#""ack":true"#, 300), (#""ack":true,"history":true"#, 120)])
    func aGraceBeyondTheRecoveryWindow(broadcast: String, seconds: Int64) throws {
        let (stage, _) = try stage(Self.config.replacing(#""ack":true"#, with: broadcast), grace: 300)
        try stage.tick(after: 10_000)
        try stage.tick(after: seconds * 1000 - 1000)
        #expect(stage.hub.counters.memberships == 2)
        #expect(ann(try stage.tick(after: 1000)).contains { $0.contains("phx_error") })
        #expect(stage.hub.counters.memberships == 1)
    }

    /// In a private channel it is asked first what the fresh token may read.
    @Test func aPrivateChannelWaitsForItsPolicies() throws {
        var limits = HubLimits()
        limits.tokenGrace = 30
        let stage = Stage(limits: limits)
        stage.connect(1, subject: "ann", expiresAt: 1010)
        stage.connect(2, subject: "bob")
        for slot in [1, 2] as [Slot] { try stage.joinPrivate("realtime:a", slot) }
        let key = ChannelKey(topic: "realtime:a", isPrivate: true)
        func message(_ event: String) -> BroadcastMessage { .text(Array(#"{"event":"\#(event)"}"#.utf8)) }
        try stage.tick(after: 10_000)
        try stage.say(fresh, from: 1)
        let question = try #require(stage.asked.first)
        _ = try stage.watch { $0.publishMessage(message("early"), to: key) }
        let answered = try stage.watch { $0.receiveAuthorization(question, is: .decided(.all)) }
        #expect(ann(answered).allSatisfy { !$0.contains("early") })
        let late = try stage.watch { $0.publishMessage(message("late"), to: key) }
        #expect(!ann(late).isEmpty)
    }

    @Test("a good answer of the policies makes no good token")
    func policiesThatAreAskedAgainEndNoLapse() throws {
        var limits = HubLimits()
        limits.tokenGrace = 30
        let stage = Stage(limits: limits)
        stage.connect(1, subject: "ann", expiresAt: 1010)
        stage.connect(2, subject: "bob")
        for slot in [1, 2] as [Slot] { try stage.joinPrivate("realtime:a", slot) }
        let key = ChannelKey(topic: "realtime:a", isPrivate: true)
        try stage.tick(after: 10_000)
        _ = try stage.watch { _ = $0.refreshUser("ann") }
        let question = try #require(stage.asked.last)
        _ = try stage.watch { $0.receiveAuthorization(question, is: .decided(.all)) }
        let told = try stage.watch { $0.publishMessage(.text(Array(#"{"event":"e"}"#.utf8)), to: key) }
        #expect(!told.isEmpty && ann(told).isEmpty)
    }
}
