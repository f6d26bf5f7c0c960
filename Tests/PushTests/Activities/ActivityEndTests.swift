import Hub
import Push
import Testing
import Wire

/// How activities end.
@Suite struct ActivityEndTests {
    @Test func afterEightHours() throws {
        let stage = try SchedulerStage.settled(.away)
        stage.change("a") { $0.unread = 4 }
        stage.run(for: 10_000)
        let rest = SchedulerStage.start.monotonic + 8 * 3_600_000 - stage.now.monotonic
        #expect(stage.run(for: rest - 1).isEmpty)
        let end = stage.run(for: 1)
        #expect(end.map(\.request.event) == [.end] && end.first?.request.priority == 10)
        #expect(end.first?.request.content?["unread"]?.int == 4)
        let aps = try JSON(parsing: try #require(end.first).request.payload)["aps"]
        #expect(aps?["dismissal-date"]?.int == Int(stage.seconds))
        #expect(!stage.scheduler.contains("a") && stage.scheduler.nextDue == nil)
    }

    @Test func oneThatIsTooOldWhenTheHubStartsEndsAtOnce() throws {
        let stage = try SchedulerStage()
        stage.put(
            try SchedulerStage.registration(state: #"{"x":1}"#, startedAt: SchedulerStage.start.unix - 9 * 3_600_000),
            status: .away, facts: nil, wasDelivered: true, isPosted: false)
        let end = stage.deliver()
        #expect(end.map(\.event) == [.end] && end.first?.content?.description == #"{"x":1}"#)
        #expect(stage.advance() == [.ended(id: "a")])
    }

    @Test func whenTheConversationIsLeft() throws {
        let stage = try SchedulerStage.settled(.away)
        stage.leave("a")
        // What comes after is not the user's to see.
        stage.change("a") { $0.name = "Secret" }
        let end = stage.deliver()
        #expect(end.map(\.event) == [.end] && end.first?.content?["name"]?.string == "Team")
        let late = ActivityPost(contentState: .emptyObject)
        #expect(stage.post(late, to: "a") == .stale)
        #expect(stage.advance() == [.ended(id: "a")])
    }

    /// Nothing is pushed to an app that is connected, not even an end; if it goes away without having heard, it gets
    /// it.
    @Test func byASocketFirst() throws {
        let stage = try SchedulerStage.settled(.live)
        stage.leave("a")
        guard case .show(let shown)? = stage.advance().first else {
            Issue.record("nothing was shown")
            return
        }
        #expect(shown.event == .end)
        #expect(stage.run(for: 60_000).isEmpty)
        stage.set(.away, of: "a")
        #expect(stage.run(for: 1_000).map(\.request.event) == [.end])
        #expect(!stage.scheduler.contains("a"))
    }

    @Test func whatCannotBeEndedIsForgotten() throws {
        let stage = try SchedulerStage.settled(.live)
        stage.wait(12 * 3_600_000)
        #expect(stage.advance().contains(.ended(id: "a")))
        #expect(stage.scheduler.count == 0)
    }

    @Test func anEndGoesAgainUntilItIsAnswered() throws {
        let stage = try SchedulerStage.settled(.away)
        stage.leave("a")
        let first = try #require(stage.deliver(.unanswered).first)
        #expect(stage.deliver().isEmpty)
        stage.wait(2_000)
        let second = try #require(stage.deliver(.failed(retryLater: true)).first)
        stage.wait(3_999)
        #expect(stage.deliver().isEmpty)
        stage.wait(1)
        let third = try #require(stage.deliver().first)
        #expect([first, second, third].map(\.event) == [.end, .end, .end])
        #expect(first.timestamp < second.timestamp && second.timestamp < third.timestamp)
        #expect(stage.advance() == [.ended(id: "a")])
    }
}
