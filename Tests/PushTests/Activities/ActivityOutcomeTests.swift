import Hub
import Push
import Testing
import Wire

/// What becomes of a push, and what is done about it.
@Suite struct ActivityOutcomeTests {
    private func changed() throws -> SchedulerStage {
        let stage = try SchedulerStage.settled(.away)
        stage.change("a") { $0.unread = 1 }
        stage.wait(2_000)
        return stage
    }

    @Test func afterSilenceTheLatestStateGoes() throws {
        let stage = try changed()
        let first = try stage.launch()
        stage.change("a") { $0.unread = 2 }
        stage.wait(30_000)
        stage.sent("a", timestamp: first.timestamp, .unanswered)
        let pushes = stage.run(for: 600_000)
        #expect(pushes.map { $0.request.content?["unread"]?.int } == [2])
        #expect(pushes.first.map { $0.request.timestamp > first.timestamp } == true)
    }

    /// Nobody knows whether the phone has it: the state before it is no longer "the same as last time".
    @Test func afterSilenceTheOldStateIsNewsAgain() throws {
        let stage = try changed()
        let first = try stage.launch()
        stage.change("a") { $0.unread = 0 }
        stage.sent("a", timestamp: first.timestamp, .unanswered)
        #expect(stage.run(for: 600_000).map { $0.request.content?["unread"]?.int } == [0])
    }

    @Test func retriesComeFurtherApart() throws {
        let stage = try changed()
        var times: [Int64] = []
        for _ in 0..<8 {
            while stage.deliver(.failed(retryLater: true)).isEmpty {
                stage.wait(max(1, try #require(stage.scheduler.nextDue) - stage.now.monotonic))
            }
            times.append(stage.now.monotonic)
        }
        #expect(zip(times.dropFirst(), times).map { $0 - $1 } == [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
    }

    @Test func whatIsRefusedForGoodIsNotTriedAgain() throws {
        let stage = try changed()
        #expect(stage.deliver(.failed(retryLater: false)).count == 1)
        #expect(stage.run(for: 600_000).isEmpty)
        stage.change("a") { $0.unread = 3 }
        #expect(stage.run(for: 600_000).count == 1)
    }

    @Test func aTokenThatIsGoneTakesTheActivityWithIt() throws {
        let stage = try changed()
        #expect(stage.deliver(.gone(since: nil)).count == 1)
        #expect(stage.advance() == [.ended(id: "a")])
        #expect(!stage.scheduler.contains("a"))
    }

    /// As with alerts, whose rows stay: the phone registered the same token again after Apple had called it dead.
    @Test func aTokenThatWasRegisteredAgainStays() throws {
        let again = try SchedulerStage.registration()
        for (since, stays) in [(again.registeredAt, true), (again.registeredAt + 1, false)] {
            let stage = try changed()
            let first = try stage.launch()
            stage.put(again, status: .away, facts: nil, wasDelivered: false, isPosted: false)
            stage.sent("a", timestamp: first.timestamp, .gone(since: since))
            let pushes = stage.run(for: 60_000)
            #expect(pushes.count == (stays ? 1 : 0), "the latest state goes again")
            #expect(stage.scheduler.contains("a") == stays)
        }
    }

    @Test func theOldTokensEndIsNotTheNewOnes() throws {
        let stage = try changed()
        let first = try stage.launch()
        stage.put(
            try SchedulerStage.registration(token: 2), status: .away, facts: nil, wasDelivered: false, isPosted: false)
        stage.sent("a", timestamp: first.timestamp, .gone(since: nil))
        let pushes = stage.run(for: 60_000)
        #expect(try pushes.map(\.request.destination) == [SchedulerStage.registration(token: 2).destination])
        #expect(stage.scheduler.contains("a"))
    }

    @Test func anAnswerToAnotherPushIsNone() throws {
        let stage = try changed()
        let first = try stage.launch()
        stage.sent("a", timestamp: first.timestamp + 1, .gone(since: nil))
        #expect(stage.stamped("a", timestamp: first.timestamp) == nil)
        stage.sent("a", timestamp: first.timestamp, .delivered)
        stage.sent("a", timestamp: first.timestamp, .gone(since: nil))
        #expect(stage.run(for: 60_000).isEmpty)
        #expect(stage.scheduler.contains("a"))
    }

    @Test func withoutATimestampNothingLeaves() throws {
        let stage = try changed()
        guard case .stamp(let request)? = stage.advance().first else {
            Issue.record("nothing was to be pushed")
            return
        }
        stage.unstamped("a", timestamp: request.timestamp)
        #expect(stage.stamped("a", timestamp: request.timestamp) == nil)
        let pushes = stage.run(for: 60_000)
        #expect(pushes.count == 1)
        #expect(pushes.first.map { $0.request.timestamp > request.timestamp } == true)
        #expect(pushes.first?.request.stamp.version == request.stamp.version)
    }

    @Test func anotherHubsStampIsTakenOver() throws {
        let stage = try changed()
        guard case .stamp(let request)? = stage.advance().first else {
            Issue.record("nothing was to be pushed")
            return
        }
        let other = try SchedulerStage.registration(
            token: 3, timestamp: request.timestamp + 50, version: 20, state: #"{"unread":9}"#)
        stage.refused("a", timestamp: request.timestamp, current: other)
        let pushes = stage.run(for: 60_000)
        #expect(pushes.map { $0.request.content?["unread"]?.int } == [1])
        #expect(pushes.first.map { $0.request.timestamp > other.timestamp && $0.request.stamp.version == 21 } == true)
        #expect(pushes.first?.request.destination == other.destination)
    }

    /// The app is connected: what the other hub pushed came over what was shown.
    @Test func anotherHubsStateIsShownOver() throws {
        let stage = try changed()
        guard case .stamp(let request)? = stage.advance().first else {
            Issue.record("nothing was to be pushed")
            return
        }
        stage.set(.live, of: "a")
        #expect(stage.advance().count == 1)
        let other = try SchedulerStage.registration(
            timestamp: request.timestamp + 9, version: 20, state: #"{"unread":9}"#, wasDelivered: true)
        stage.refused("a", timestamp: request.timestamp, current: other)
        guard case .show(let shown)? = stage.advance().first else {
            Issue.record("nothing was shown")
            return
        }
        #expect(shown.timestamp > other.timestamp && shown.version > other.version)
    }

    @Test(arguments: [true, false]) func anotherHubsEqualStateIsEnoughIfItArrived(_ wasDelivered: Bool) throws {
        let stage = try changed()
        guard case .stamp(let request)? = stage.advance().first else {
            Issue.record("nothing was to be pushed")
            return
        }
        let state = try #require(request.stamp.state)
        let other = ActivityRegistration(
            id: "a", user: "u-a", session: nil, destination: request.destination, conversation: "c", registeredAt: 0,
            startedAt: SchedulerStage.start.unix, timestamp: request.timestamp, version: request.stamp.version,
            state: state,
            wasDelivered: wasDelivered)
        stage.refused("a", timestamp: request.timestamp, current: other)
        #expect(stage.run(for: 60_000).count == (wasDelivered ? 0 : 1))
    }
}
