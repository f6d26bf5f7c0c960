import Hub
import Push
import Testing
import Wire

/// What a backend says of an activity.
@Suite struct ActivityPostTests {
    private func post(
        _ state: String, event: ActivityEvent = .update, timestamp: Int64? = nil, rings: Bool = false,
        dismissal: Int64? = nil
    ) throws -> ActivityPost {
        ActivityPost(
            contentState: try SchedulerStage.json(state), event: event, timestamp: timestamp,
            alert: rings ? ActivityAlert(title: "T", body: "B") : nil, dismissal: dismissal)
    }

    @Test func isPassedThroughUnchangedAndOwnsTheActivity() throws {
        let stage = try SchedulerStage.settled(.away)
        let odd = #"{"b":1.50,"a":{"b":1e3, "b":2},"c":"\u00e9\/"}"#
        #expect(stage.post(try post(odd), to: "a") == .queued)
        let pushes = stage.run(for: 60_000)
        #expect(pushes.map { $0.request.content?.description } == [odd])
        #expect(pushes.first?.request.stamp.isPosted == true && pushes.first?.request.priority == 5)
        // The template is silent from now on, whatever happens.
        stage.change("a") { $0.unread = 9 }
        stage.set(.live, of: "a")
        _ = stage.advance()
        stage.set(.away, of: "a")
        #expect(stage.run(for: 600_000).isEmpty)
    }

    @Test func staysTheBackendsAfterARestart() throws {
        let stage = try SchedulerStage()
        stage.put(
            try SchedulerStage.registration(timestamp: 5, version: 1, state: #"{"x":1}"#), status: .away,
            facts: ConversationFacts(name: "Team"), wasDelivered: false, isPosted: true)
        #expect(stage.run(for: 60_000).map { $0.request.content?.description } == [#"{"x":1}"#])
    }

    @Test func staleOnesAreDropped() throws {
        let stage = try SchedulerStage.settled(.away)
        let now = stage.seconds
        func offer(_ timestamp: Int64?) throws -> PostVerdict {
            let state = #"{"t":\#(timestamp ?? -1)}"#
            return stage.post(try post(state, timestamp: timestamp), to: "a")
        }
        #expect(try offer(now - 1) == .queued)
        #expect(try offer(now - 1) == .stale)
        #expect(try offer(now - 2) == .stale)
        #expect(try offer(now) == .queued)
        // Sent later than that, and still only as new as that.
        #expect(stage.run(for: 60_000).map(\.request.timestamp) == [now])
        #expect(try offer(now) == .stale)
        #expect(try offer(now + 1) == .queued)
        #expect(try offer(nil) == .queued)
        #expect(try offer(now + 2) == .stale)
        let last = stage.run(for: 60_000)
        #expect(last.map { $0.request.content?["t"]?.int } == [-1])
        #expect(stage.scheduler.statistics.stalePosts == 4)
    }

    @Test func isNotNewerThanWhatTheTemplateTold() throws {
        let stage = try SchedulerStage.settled(.away)
        stage.change("a") { $0.unread = 1 }
        stage.wait(2_000)
        let told = try #require(stage.deliver().first).timestamp
        #expect(stage.post(try post("{}", timestamp: told), to: "a") == .stale)
        #expect(stage.post(try post("{}", timestamp: told + 1), to: "a") == .queued)
    }

    @Test func ringsAtOnceAndOnce() throws {
        let stage = try SchedulerStage.settled(.away)
        #expect(stage.post(try post(#"{"n":1}"#, rings: true), to: "a") == .queued)
        let first = try stage.launch()
        #expect(first.isAlerting && first.priority == 10)
        #expect(try JSON(parsing: first.payload)["aps"]?["alert"]?["title"]?.string == "T")
        // What comes while one is on its way waits for it; the alert is not lost when a later state takes its place.
        #expect(stage.post(try post(#"{"n":2}"#, rings: true), to: "a") == .queued)
        #expect(stage.post(try post(#"{"n":3}"#), to: "a") == .queued)
        #expect(stage.advance().isEmpty)
        stage.sent("a", timestamp: first.timestamp, .delivered)
        let second = try #require(stage.deliver().first)
        #expect(second.content?["n"]?.int == 3 && second.isAlerting)
        #expect(stage.post(try post(#"{"n":4}"#), to: "a") == .queued)
        #expect(stage.run(for: 60_000).map(\.request.isAlerting) == [false])
        // An equal state rings all the same.
        #expect(stage.post(try post(#"{"n":4}"#, rings: true), to: "a") == .queued)
        #expect(stage.run(for: 60_000).map(\.request.isAlerting) == [true])
        #expect(stage.post(try post(#"{ "n": 4 }"#), to: "a") == .queued)
        #expect(stage.run(for: 60_000).isEmpty)
    }

    @Test func isWithheldWhileTheAppIsConnected() throws {
        let stage = try SchedulerStage.settled(.live)
        #expect(stage.post(try post(#"{"n":1}"#), to: "a") == .withheld)
        stage.wait(2_000)
        guard case .show(let shown)? = stage.advance().first else {
            Issue.record("nothing was shown")
            return
        }
        #expect(String(decoding: shown.state, as: UTF8.self) == #"{"n":1}"#)
        stage.set(.inGrace(until: stage.now.monotonic + 12_000), of: "a")
        #expect(stage.post(try post(#"{"n":2}"#, rings: true), to: "a") == .withheld)
        #expect(stage.run(for: 12_000).isEmpty)
        stage.set(.away, of: "a")
        let pushes = stage.run(for: 60_000)
        #expect(pushes.map { $0.request.content?["n"]?.int } == [2])
        #expect(pushes.first?.request.isAlerting == true)
        #expect(pushes.first.map { $0.request.timestamp > shown.timestamp } == true)
    }

    /// The socket told the phone something else in between, and its last word may be lost in the window.
    @Test func goesByPushAgainAfterTheSocketSaidOtherwise() throws {
        let stage = try SchedulerStage.settled(.away)
        #expect(stage.post(try post(#"{"n":1}"#), to: "a") == .queued)
        #expect(stage.run(for: 10_000).count == 1)
        stage.set(.live, of: "a")
        #expect(stage.post(try post(#"{"n":2}"#), to: "a") == .withheld)
        #expect(stage.run(for: 10_000).isEmpty)
        stage.set(.inGrace(until: stage.now.monotonic + 12_000), of: "a")
        #expect(stage.post(try post(#"{"n":1}"#), to: "a") == .withheld)
        #expect(stage.run(for: 12_000).isEmpty)
        stage.set(.away, of: "a")
        #expect(stage.run(for: 10_000).map { $0.request.content?["n"]?.int } == [1])
    }

    @Test func ringsAgainIfNobodyKnowsWhetherItRang() throws {
        let stage = try SchedulerStage.settled(.away)
        #expect(stage.post(try post(#"{"n":1}"#, rings: true), to: "a") == .queued)
        #expect(stage.deliver(.unanswered).map(\.isAlerting) == [true])
        #expect(stage.run(for: 10_000).map(\.request.isAlerting) == [true])
        // Not to somebody who is there, nor after that.
        #expect(stage.post(try post(#"{"n":2}"#, rings: true), to: "a") == .queued)
        #expect(stage.deliver(.unanswered).count == 1)
        stage.set(.live, of: "a")
        #expect(stage.run(for: 10_000).isEmpty)
        stage.set(.away, of: "a")
        #expect(stage.run(for: 10_000).map(\.request.isAlerting) == [false])
    }

    @Test func ringsWhenTheWindowIsOver() throws {
        let stage = try SchedulerStage.settled(.away)
        #expect(stage.post(try post(#"{"n":1}"#, rings: true), to: "a") == .queued)
        guard case .stamp(let request)? = stage.advance().first else {
            Issue.record("nothing was to be pushed")
            return
        }
        stage.set(.inGrace(until: stage.now.monotonic + 2_000), of: "a")
        #expect(stage.stamped("a", timestamp: request.timestamp) == nil)
        stage.set(.away, of: "a")
        #expect(stage.run(for: 10_000).map(\.request.isAlerting) == [true])
    }

    @Test func endsIt() throws {
        let stage = try SchedulerStage.settled(.away)
        #expect(stage.post(try post("{}", event: .end, dismissal: 77), to: "a") == .queued)
        let end = try #require(stage.deliver().first)
        #expect(end.event == .end && end.priority == 10 && end.content?.description == "{}")
        #expect(try JSON(parsing: end.payload)["aps"]?["dismissal-date"]?.int == 77)
        #expect(stage.advance() == [.ended(id: "a")])
    }

    @Test func isRefusedWhereItCannotBeSent() throws {
        let stage = try SchedulerStage.settled(.away)
        let large = #"{"a":"\#(String(repeating: "x", count: 4_096))"}"#
        let bad = [
            try post("{}", event: .start), try post("[]"), try post(large),
            try post("{}", timestamp: stage.now.unix), try post("{}", timestamp: -1),
        ]
        for post in bad {
            guard case .refused(let why) = stage.post(post, to: "a") else {
                Issue.record("\(post) was taken")
                continue
            }
            #expect(why.hasSuffix("."))
        }
        #expect(stage.run(for: 60_000).isEmpty)
    }
}
