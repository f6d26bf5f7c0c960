import Hub
import Push
import Testing
import Wire

/// By socket or by push: what an activity is sent while its app comes and goes.
@Suite struct ActivityStatusTests {
    private func shown(_ actions: [ActivityAction]) -> [ShownState] {
        actions.compactMap { action in
            if case .show(let state) = action { state } else { nil }
        }
    }

    private func state(_ shown: ShownState?) -> JSON? { shown.map { JSON(trusted: $0.state[...]) } }

    /// A phone is locked for ten seconds, then for good.
    @Test func disconnectedIsPushedOnceAndOnlyAfterTheWindow() throws {
        let stage = try SchedulerStage.settled(.live)
        stage.set(.inGrace(until: stage.now.monotonic + 12_000), of: "a")
        #expect(stage.run(for: 10_000).isEmpty)
        stage.set(.live, of: "a")
        #expect(stage.run(for: 10_000).isEmpty)
        stage.set(.inGrace(until: stage.now.monotonic + 12_000), of: "a")
        #expect(stage.run(for: 12_000).isEmpty)
        stage.set(.away, of: "a")
        let pushes = stage.run(for: 3_600_000)
        #expect(pushes.map { $0.request.content?["connected"]?.bool } == [false])
        #expect(pushes.first?.request.priority == 5)
    }

    @Test func whatHappensWhileLiveIsShown() throws {
        let stage = try SchedulerStage.settled(.live)
        stage.change("a") { $0.unread = 1 }
        stage.wait(1_000)
        stage.change("a") { $0.unread = 2 }
        #expect(stage.advance().isEmpty)
        stage.wait(2_000)
        let actions = stage.advance()
        let states = shown(actions)
        #expect(states.count == 1 && actions.count == 1)
        #expect(state(states.first)?["unread"]?.int == 2)
        #expect(state(states.first)?["connected"]?.bool == true)
        #expect(states.first?.user == "u-a" && states.first?.event == .update)
        // Equal ones are not shown again.
        stage.change("a") { $0.unread = 3 }
        stage.change("a") { $0.unread = 2 }
        stage.wait(10_000)
        #expect(stage.advance().isEmpty)
    }

    @Test func whoComesBackIsShownTheStateAtOnce() throws {
        let stage = try SchedulerStage.settled(.away)
        stage.change("a") { $0.unread = 5 }
        stage.wait(1_999)
        stage.set(.live, of: "a")
        let first = shown(stage.advance())
        #expect(state(first.first)?["unread"]?.int == 5)
        #expect(stage.run(for: 60_000).isEmpty)
        // A new socket, and one of which the app asks for it.
        stage.set(.inGrace(until: stage.now.monotonic + 2_000), of: "a")
        stage.set(.live, of: "a")
        let second = shown(stage.advance())
        stage.showAgain("a")
        let third = shown(stage.advance())
        #expect(second.count == 1 && third.count == 1)
        let times = (first + second + third).map(\.timestamp)
        #expect(times == times.sorted() && Set(times).count == 3)
    }

    /// The app comes back while the timestamp is being written down: the push does not leave.
    @Test func aPushIsWithdrawn() throws {
        let stage = try SchedulerStage.settled(.away)
        stage.change("a") { $0.unread = 5 }
        stage.wait(2_000)
        guard case .stamp(let request)? = stage.advance().first else {
            Issue.record("nothing was to be pushed")
            return
        }
        stage.set(.live, of: "a")
        let states = shown(stage.advance())
        #expect(states.first.map { $0.timestamp > request.timestamp } == true)
        #expect(stage.stamped("a", timestamp: request.timestamp) == nil)
        #expect(stage.scheduler.statistics.withdrawn == 1)
        #expect(stage.run(for: 60_000).isEmpty)
    }

    /// Away and back and away, faster than pushes are answered.
    @Test func onlyOneIsOnItsWay() throws {
        let stage = try SchedulerStage.settled(.away)
        stage.change("a") { $0.unread = 5 }
        stage.wait(2_000)
        let request = try stage.launch()
        stage.set(.live, of: "a")
        _ = stage.advance()
        stage.set(.away, of: "a")
        stage.wait(60_000)
        #expect(stage.advance().isEmpty)
        stage.sent("a", timestamp: request.timestamp, .delivered)
        let next = try #require(stage.deliver().first)
        #expect(next.timestamp > request.timestamp)
        #expect(stage.run(for: 60_000).isEmpty)
    }

    /// An app knows by itself that it is connected, and may have drawn that.
    @Test func disconnectedIsPushedEvenIfTheTemplateDoesNotSaySo() throws {
        let stage = try SchedulerStage()
        stage.scheduler = ActivityScheduler(ActivityRules(content: try ContentTemplate(#"{"unread":"{unread}"}"#)))
        stage.put(try SchedulerStage.registration(), status: .away, facts: ConversationFacts())
        #expect(stage.run(for: 60_000).count == 1)
        stage.set(.live, of: "a")
        #expect(stage.run(for: 60_000).isEmpty)
        stage.set(.away, of: "a")
        #expect(stage.run(for: 60_000).count == 1)
    }

    @Test func theTwoIndexesFollow() throws {
        let stage = try SchedulerStage.settled(.away)
        #expect(stage.scheduler.activities(ofUser: "u-a") == ["a"])
        #expect(stage.scheduler.activities(inConversation: "c") == ["a"])
        stage.put(
            try SchedulerStage.registration(conversation: "d"), status: .away, facts: nil, wasDelivered: false,
            isPosted: false)
        #expect(stage.scheduler.activities(inConversation: "c").isEmpty)
        #expect(stage.scheduler.activities(inConversation: "d") == ["a"])
        #expect(stage.remove("a"))
        #expect(stage.scheduler.activities(ofUser: "u-a").isEmpty && stage.scheduler.nextDue == nil)
    }
}
