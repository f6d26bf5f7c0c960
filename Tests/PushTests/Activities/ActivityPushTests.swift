import Hub
import Push
import Testing
import Wire

/// What an activity is sent while its app is away.
@Suite struct ActivityPushTests {
    @Test func aStateIsWholeAndNumbered() throws {
        let stage = try SchedulerStage.settled(.away)
        stage.change("a") {
            $0.lastMessage = .init(text: "one\ntwo", senderID: "s", senderName: "Ann", at: 7)
            $0.unread = 2
            $0.typing = ["Zoe", "Bo"]
            $0.online = ["9", "1"]
        }
        stage.wait(2_000)
        let request = try stage.launch()
        #expect(
            request.content?.description == """
                {"name":"Team","last":"Ann: one two","unread":2,"typing":["Bo","Zoe"],"online":["1","9"],\
                "connected":false,"version":2,"at":\(stage.seconds)}
                """)
        #expect(
            request.stamp.version == 2 && request.priority == 5 && request.event == .update && !request.stamp.isPosted)
        #expect(request.timestamp == stage.seconds && request.staleDate == stage.seconds + 900)
        #expect(try request.destination == SchedulerStage.registration().destination && request.user == "u-a")
        let aps = try JSON(parsing: request.payload)["aps"]
        #expect(aps?["content-state"]?.description == request.content?.description)
        #expect(aps?["stale-date"]?.int == Int(request.staleDate))
    }

    @Test func changesSettleFirst() throws {
        let stage = try SchedulerStage.settled(.away)
        let start = stage.now.monotonic
        for count in 1...3 {
            stage.change("a") { $0.unread = count }
            #expect(stage.run(for: 1_500).isEmpty)
        }
        let pushes = stage.run(for: 60_000)
        #expect(pushes.map(\.at) == [start + 3_000 + 2_000])
        #expect(pushes.first?.request.content?["unread"]?.int == 3)
    }

    @Test func unlessTheyNeverDo() throws {
        let stage = try SchedulerStage.settled(.away)
        let start = stage.now.monotonic
        var pushes: [(at: Int64, request: ActivityPush)] = []
        for count in 1...30 {
            stage.change("a") { $0.unread = count }
            pushes += stage.run(for: 1_000)
        }
        #expect(pushes.map { $0.at - start } == [10_000, 20_000, 30_000])
    }

    @Test func whatIsEqualIsNotSentAgain() throws {
        let stage = try SchedulerStage.settled(.away)
        stage.change("a") { $0.typing = ["Ann"] }
        stage.wait(1_000)
        stage.change("a") { $0.typing = [] }
        #expect(stage.run(for: 60_000).isEmpty)
        #expect(stage.scheduler.statistics.suppressed == 1)
    }

    @Test func nothingIsToldBeforeTheFactsAreKnown() throws {
        let stage = try SchedulerStage()
        stage.put(
            try SchedulerStage.registration(), status: .live, facts: nil, wasDelivered: true, isPosted: false)
        #expect(!stage.change("a") { $0.unread = 1 })
        #expect(stage.advance().isEmpty)
        stage.set(.away, of: "a")
        #expect(stage.run(for: 60_000).isEmpty)
        stage.set(ConversationFacts(name: "Team"), of: "a")
        #expect(stage.run(for: 60_000).map { $0.request.content?["name"]?.string } == ["Team"])
    }

    /// The clock stands still, or goes back: timestamps go on.
    @Test func timestampsIncreaseWhateverTheClockSays() throws {
        let stage = try SchedulerStage.settled(.away)
        let first = stage.scheduler.statistics.pushed
        var last: Int64 = stage.seconds
        for count in 1...5 {
            stage.change("a") { $0.unread = count }
            stage.now = HubTime(monotonic: stage.now.monotonic + 2_000, unix: stage.now.unix - 100_000)
            let request = try #require(stage.deliver().first)
            #expect(request.timestamp == last + 1 || count == 1)
            last = request.timestamp
        }
        #expect(stage.scheduler.statistics.pushed == first + 5)
    }

    @Test func aRestartGoesOnWhereTheLastHubStopped() throws {
        let stage = try SchedulerStage()
        let state = """
            {"name":"Team","last":": ","unread":0,"typing":[],"online":[],"connected":false,"version":7,"at":1900000000}
            """
        let facts = ConversationFacts(name: "Team")
        for (id, wasDelivered) in [("sure", true), ("unsure", false)] {
            stage.put(
                try SchedulerStage.registration(Name(id), timestamp: 1_900_000_000, version: 7, state: state),
                status: .away,
                facts: facts, wasDelivered: wasDelivered, isPosted: false)
        }
        let pushes = stage.run(for: 60_000)
        #expect(pushes.map(\.request.id) == ["unsure"])
        #expect(pushes.first?.request.timestamp == 1_900_000_001 && pushes.first?.request.stamp.version == 8)
    }

    @Test func aNewTokenGetsTheCurrentState() throws {
        let stage = try SchedulerStage.settled(.away)
        stage.put(
            try SchedulerStage.registration(token: 2), status: .away, facts: nil, wasDelivered: false, isPosted: false)
        let pushes = stage.run(for: 60_000)
        #expect(try pushes.map(\.request.destination) == [SchedulerStage.registration(token: 2).destination])
        #expect(pushes.first?.request.content?["name"]?.string == "Team")
        // The same token again is no news.
        stage.put(
            try SchedulerStage.registration(token: 2), status: .away, facts: nil, wasDelivered: false, isPosted: false)
        #expect(stage.run(for: 60_000).isEmpty)
    }

    @Test func whatIsTooLargeIsPassedOver() throws {
        var rules = ActivityRules(
            content: try ContentTemplate(#"{"a":"{preview}"}"#, preview: Preview(limit: 10_000)))
        rules.lifetime = 100_000
        let stage = try SchedulerStage()
        stage.scheduler = ActivityScheduler(rules)
        stage.put(
            try SchedulerStage.registration(), status: .away, facts: ConversationFacts(), wasDelivered: true,
            isPosted: false)
        stage.run(for: 10_000)
        let text = String(repeating: "x", count: 9_000)
        stage.change("a") {
            $0.lastMessage = .init(text: text, senderID: "", senderName: "", at: 0)
        }
        stage.wait(2_000)
        guard case .unsendable("a", .tooLarge(let bytes, 4096))? = stage.advance().first else {
            Issue.record("it was sent, or waits for ever")
            return
        }
        #expect(bytes > 9_000)
        stage.change("a") { $0.unread = 1 }
        #expect(stage.run(for: 20_000).isEmpty)
        // Its end does not hang on it.
        let end = stage.run(for: 100_000)
        #expect(end.map(\.request.event) == [.end] && end.first?.request.stamp.state == nil)
        #expect(stage.scheduler.count == 0)
    }

    @Test func anUnknownActivityIsNobodys() throws {
        let stage = try SchedulerStage.settled(.away)
        #expect(!stage.set(.live, of: "b"))
        #expect(!stage.set(ConversationFacts(name: "X"), of: "b"))
        #expect(!stage.change("b") { $0.unread = 1 })
        #expect(!stage.leave("b") && !stage.remove("b"))
        #expect(!stage.sent("b", timestamp: 1, .gone(since: nil)))
        #expect(stage.stamped("b", timestamp: 1) == nil)
        let post = ActivityPost(contentState: .emptyObject)
        #expect(stage.post(post, to: "b") == .unknown)
        #expect(stage.scheduler.statistics.unknownPosts == 1)
        #expect(stage.run(for: 60_000).isEmpty)
    }
}
