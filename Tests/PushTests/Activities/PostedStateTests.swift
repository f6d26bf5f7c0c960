import Hub
import Push
import Testing
import Wire

/// A card that backend and hub fill together.
@Suite struct PostedStateTests {
    private func posted(_ state: String, _ hub: String...) throws -> PostedState {
        try PostedState(try SchedulerStage.json(state), hub: hub)
    }

    private func post(_ state: String, hub: [String], timestamp: Int64? = nil) throws -> ActivityPost {
        ActivityPost(try PostedState(try SchedulerStage.json(state), hub: hub), timestamp: timestamp)
    }

    private func texts(_ pushes: [(at: Int64, request: ActivityPush)]) -> [String?] {
        pushes.map { $0.request.content?.description }
    }

    private var values: TemplateVariables {
        var values = TemplateVariables()
        values.set("connected", true)
        values.set("unread", 3)
        values.set("typing", ["Ada"])
        return values
    }

    @Test func othersMembersStayToTheByte() throws {
        let odd = #"{ "b":1.50, "a":{"connected":1e3, "b":2} ,"connected" : false,"c":"\u00e9\/", "d":"{unread}"}"#
        #expect(
            try posted(odd, "connected").filled(with: values).description
                == odd.replacing("false", with: "true"))
        #expect(try posted(odd).filled(with: values).description == odd)
    }

    @Test(arguments: [
        ("{}", ["connected"], #"{"connected":true}"#),
        ("{ }", ["connected", "unread"], #"{ "connected":true,"unread":3}"#),
        (#"{"step":1}"#, ["unread", "unread"], #"{"step":1,"unread":3}"#),
        (#"{"n":"{unread}","l":"{{{unread}}} of {typing}"}"#, ["n", "l"], #"{"n":3,"l":"{3} of Ada"}"#),
        (#"{"x":{"deep":["{typing}",null]},"y":0}"#, ["x"], #"{"x":{"deep":[["Ada"],null]},"y":0}"#),
        (#"{"unread":1,"unread":2}"#, ["unread"], #"{"unread":3,"unread":3}"#),
        (
            #"{"preview":"old","online":9,"present":9}"#, ["preview", "online", "present"],
            #"{"preview":"","online":[],"present":[]}"#
        ),
        (#"{"unr\u0065ad":1}"#, ["unread"], #"{"unr\u0065ad":3}"#),
    ])
    func hubsMembersAreFilled(_ state: String, _ hub: [String], _ filled: String) throws {
        let posted = try PostedState(try SchedulerStage.json(state), hub: hub)
        #expect(posted.filled(with: values).description == filled)
        let again = try #require(PostedState(stored: posted.stored))
        #expect(again.filled(with: values).description == filled && again.state.description == state)
    }

    @Test(arguments: [
        (#"{"a":1}"#, "a", "hub names \"a\", which is no variable"), ("{}", "nothing", "hub names \"nothing\""),
        (
            #"{"a":"{nothing}"}"#, "a",
            "The member \"a\" of contentState is no template (character 1: there is no variable"
        ),
        (#"{"connected":"{"}"#, "connected", "a { without a }"),
    ])
    func whatTheHubCannotFillIsOneSentence(_ state: String, _ name: String, _ sentence: String) throws {
        let error = #expect(throws: PostedStateError.self) { try posted(state, name) }
        #expect(error?.description.contains(sentence) == true && error?.description.hasSuffix(".") == true)
    }

    @Test func saysWhetherTheAppIsConnected() throws {
        let stage = try SchedulerStage.settled(.live)
        #expect(stage.post(try post(#"{"gate":"B7","connected":0}"#, hub: ["connected"]), to: "a") == .withheld)
        stage.wait(2_000)
        guard case .show(let shown)? = stage.advance().first else {
            Issue.record("nothing was shown")
            return
        }
        #expect(String(decoding: shown.state, as: UTF8.self) == #"{"gate":"B7","connected":true}"#)
        stage.set(.inGrace(until: stage.now.monotonic + 12_000), of: "a")
        #expect(stage.run(for: 12_000).isEmpty)
        stage.set(.away, of: "a")
        let pushes = stage.run(for: 600_000)
        #expect(texts(pushes) == [#"{"gate":"B7","connected":false}"#])
        #expect(pushes.first.map { $0.request.timestamp > shown.timestamp } == true)
        // What the hub was not asked for changes nothing.
        stage.change("a") { $0.unread = 9 }
        #expect(stage.run(for: 600_000).isEmpty)
        // Back, and away without a word: it is told again, since the app may have said otherwise by itself.
        stage.set(.live, of: "a")
        _ = stage.advance()
        stage.set(.away, of: "a")
        #expect(texts(stage.run(for: 60_000)) == [#"{"gate":"B7","connected":false}"#])
    }

    @Test func goesOnWithFactsByTheRulesOfTime() throws {
        let stage = try SchedulerStage.settled(.away)
        let own = stage.seconds + 100
        #expect(
            stage.post(try post(#"{"n":0,"who":""}"#, hub: ["unread", "typing"], timestamp: own), to: "a") == .queued)
        var all = stage.run(for: 10_000)
        #expect(texts(all) == [#"{"n":0,"who":"","unread":0,"typing":[]}"#] && all.first?.request.timestamp == own)
        // Changes that follow each other closely go together, those that go on go every ten seconds, and equal ones never.
        for number in 1...25 {
            stage.change("a") { $0.unread = number }
            all += stage.run(for: 1_000)
        }
        #expect(all.count == 3)
        all += stage.run(for: 60_000)
        #expect(all.last?.request.content?["unread"]?.int == 25)
        stage.change("a") { $0.unread = 26 }
        stage.change("a") { $0.unread = 25 }
        #expect(stage.run(for: 60_000).isEmpty)
        stage.wait(200_000)
        stage.change("a") { $0.typing = ["Ada"] }
        all += stage.run(for: 10_000)
        #expect(all.last?.request.content?["typing"]?.elements.count == 1)
        let timestamps = all.map(\.request.timestamp)
        #expect(timestamps == timestamps.sorted() && Set(timestamps).count == timestamps.count)
        #expect(all.last.map { $0.request.timestamp > own + 100 } == true, "what changed later is of later")
        #expect(all.allSatisfy { $0.request.priority == 5 })
        // A newer post of the backend takes its place, though the hub's states are newer than its time.
        #expect(stage.post(try post(#"{"end":true}"#, hub: [], timestamp: own + 1), to: "a") == .queued)
        let last = stage.run(for: 60_000)
        #expect(texts(last) == [#"{"end":true}"#])
        #expect(last.first.map { $0.request.timestamp > timestamps.last ?? 0 } == true)
        #expect(last.first?.request.stamp.post == nil)
        #expect(all.allSatisfy { $0.request.stamp.post != nil })
    }

    @Test func survivesARestart() throws {
        let first = try SchedulerStage.settled(.away)
        #expect(first.post(try post(#"{"gate":"B7"}"#, hub: ["connected", "unread"]), to: "a") == .queued)
        let push = try #require(first.run(for: 10_000).first).request
        let registration = ActivityRegistration(
            id: "a", user: "u-a", session: nil, destination: push.destination, conversation: "c",
            registeredAt: SchedulerStage.start.unix, startedAt: SchedulerStage.start.unix, timestamp: push.timestamp,
            version: push.stamp.version, state: push.stamp.state, isPosted: push.stamp.isPosted, post: push.stamp.post,
            wasDelivered: true)
        let second = try SchedulerStage()
        second.now = first.now
        second.put(registration, status: .away, facts: nil, wasDelivered: true, isPosted: true)
        #expect(second.run(for: 60_000).isEmpty, "the phone has it")
        second.change("a") { $0.unread = 4 }
        #expect(texts(second.run(for: 60_000)) == [#"{"gate":"B7","connected":false,"unread":4}"#])
        second.set(.live, of: "a")
        guard case .show(let shown)? = second.advance().first else {
            Issue.record("nothing was shown")
            return
        }
        #expect(String(decoding: shown.state, as: UTF8.self) == #"{"gate":"B7","connected":true,"unread":4}"#)
        #expect(shown.timestamp > push.timestamp)
    }

    /// A post that the hub wrote down and never sent.
    @Test func isSentAfterARestartThatCameFirst() throws {
        let stage = try SchedulerStage()
        let post = try posted(#"{"gate":"B7"}"#, "connected").stored
        stage.put(
            ActivityRegistration(
                id: "a", user: "u", session: nil, destination: try SchedulerStage.registration().destination,
                conversation: nil, registeredAt: SchedulerStage.start.unix, startedAt: SchedulerStage.start.unix,
                isPosted: true, post: post), status: .away, isPosted: true)
        #expect(texts(stage.run(for: 60_000)) == [#"{"gate":"B7","connected":false}"#])
    }

    @Test func isRefusedWhereTheHubsPartMakesItTooLarge() throws {
        let stage = try SchedulerStage.settled(.away)
        stage.change("a") { $0.online = (0..<10).map { "\($0)" + String(repeating: "x", count: 400) } }
        guard case .refused(let why) = stage.post(try post("{}", hub: ["present"]), to: "a") else {
            Issue.record("it was taken")
            return
        }
        #expect(why.hasSuffix(".") && why.contains("4096"))
        guard case .unknown = stage.post(try post("{}", hub: ["present"]), to: "nobody") else {
            Issue.record("nobody has one")
            return
        }
    }
}
