import Hub
import Matching
import TestSupport
import Testing
import Wire

/// Connections that only read, as events of an HTTP answer without chunks.
@Suite struct EventReaderTests {
    private let stage = Stage()
    private static let events = EventFormat(isLines: false, isChunked: false)
    private static let lines = EventFormat(isLines: true, isChunked: false)

    private func read(
        _ slot: Slot, _ channels: String..., as format: EventFormat = events, lastID: String? = nil,
        expiresAt: Int = 10_000
    ) throws -> [String] {
        let request = try EventRequest(channels: channels, lastID: lastID)
        return try stage.watch {
            $0.advanceTime(to: stage.now)
            $0.connectReader(request, as: format, on: slot, claims: Stage.claims(expiresAt: expiresAt), isPage: false)
        }
    }

    private let plain = #"{"topic":"a","config":{"broadcast":{"history":false}}}"#

    private func data(_ text: String) -> String { "data: \(text)⏎⏎" }

    // MARK: What comes of the channels

    @Test func theAnswerBeginsWithWhatCameOfEachChannel() throws {
        let said = try read(1, plain)
        #expect(said.count == 1)
        let begin = try #require(said.first)
        #expect(begin.hasPrefix("begin 1 retry: "))
        #expect(
            begin.hasSuffix(
                "⏎event: connected⏎"
                    + data(#"{"event":"connected","payload":{"channels":[{"topic":"a","status":"ok"}]}}"#)))
    }

    @Test func retryHasJitter() throws {
        var seen: Set<Int> = []
        for slot in Slot(1)...50 {
            let text = try #require(try read(slot, plain).first).dropFirst("begin \(slot) retry: ".count)
            seen.insert(try #require(Int(text.prefix { $0 != "⏎" })))
        }
        #expect(seen.count > 40 && seen.allSatisfy { (2000...5000).contains($0) })
    }

    @Test func itWaitsForAllOfThem() throws {
        let said = try read(1, plain, #"{"topic":"b","config":{"private":true}}"#)
        #expect(said == ["authorize anon read b"])
        let begun = try stage.decide(.decided([]))
        #expect(begun.count == 1)
        #expect(
            try #require(begun.first).contains(
                #"{"topic":"a","status":"ok"},{"topic":"b","status":"error","code":403,"#))
    }

    @Test func oneThatGetsNothingIsRefused() throws {
        _ = try read(1, #"{"topic":"b","config":{"private":true}}"#)
        #expect(
            try stage.decide(.decided([])) == [
                "refuse 1 Unauthorized: You do not have permissions to read from this Channel topic: b"
            ])
        #expect(try stage.decide(.decided(.all)).isEmpty)
    }

    @Test func whatAJoinMayNotDoAReaderMayNot() throws {
        #expect(
            try read(1, #"{"topic":"","config":{}}"#).first
                == "refuse 1 TopicNameRequired: You must provide a topic name")
    }

    // MARK: What it is sent

    @Test func broadcastsPresenceAndRows() throws {
        _ = try read(1, #"{"topic":"a","config":{"presence":{"enabled":true},"broadcast":{"history":false}}}"#)
        stage.connect(2)
        try stage.join("realtime:a", 2, #"{"presence":{"enabled":true,"key":"bob"}}"#)
        let said = try stage.say(
            #"["1","2","realtime:a","broadcast",{"type":"broadcast","event":"hi","payload":{"n":1}}]"#, from: 2)
        #expect(
            said.contains("1 ⇐ event: hi⏎" + data(#"{"topic":"a","event":"hi","type":"broadcast","payload":{"n":1}}"#)))
        try stage.say(
            #"["1","3","realtime:a","presence",{"type":"presence","event":"track","payload":{"x":1}}]"#, from: 2)
        let diff = try stage.tick(after: 1000).first { $0.contains("presence_diff") && $0.hasPrefix("1 ") }
        if let diff {
            #expect(
                diff.hasPrefix(
                    "1 ⇐ event: presence_diff⏎data: {\"topic\":\"a\",\"event\":\"presence_diff\",\"payload\":{"))
        }
    }

    @Test func linesOfJSON() throws {
        _ = try read(1, plain, as: Self.lines)
        stage.connect(2)
        try stage.join("realtime:a", 2)
        let said = try stage.say(#"["1","2","realtime:a","broadcast",{"event":"hi","payload":{"n":1}}]"#, from: 2)
        #expect(said.contains(#"1 ⇐ {"topic":"a","event":"hi","type":"broadcast","payload":{"n":1}}⏎"#))
    }

    @Test func keptMessagesComeBehindWhereTheReaderIs() throws {
        let begun = try read(1, "a", as: Self.lines)
        let id = try #require(begun.last.map { $0.dropFirst("1 ← {\"id\":\"".count).prefix { $0 != "\"" } })
        stage.connect(2)
        try stage.join("realtime:a", 2)
        let said = try stage.say(#"["1","2","realtime:a","broadcast",{"event":"hi","payload":{}}]"#, from: 2)
        let position = try #require(said.firstIndex { $0.hasPrefix("1 ← {\"id\":\"") })
        #expect(said[position].hasSuffix("\","), "an object that its event goes on with")
        #expect(said[position] != "1 ← {\"id\":\"\(id)\",")
        #expect(said[position + 1].hasPrefix(#"1 ⇐ "topic":"a","event":"hi","#))
    }

    @Test func onlyOneEvent() throws {
        let request = EventRequest(topic: "a", isPrivate: false, event: "b", lastID: nil)
        _ = try stage.watch { $0.connectReader(request, as: Self.events, on: 1, claims: Stage.claims(), isPage: false) }
        stage.connect(2)
        try stage.join("realtime:a", 2)
        for event in ["a", "b", "typing"] {
            let said = try stage.say(#"["1","2","realtime:a","broadcast",{"event":"\#(event)","payload":{}}]"#, from: 2)
            #expect(said.contains { $0.hasPrefix("1 ⇐") } == (event == "b"), "\(event)")
        }
    }

    // MARK: Ends

    @Test func aTokenThatRunsOutEndsTheAnswer() throws {
        _ = try read(1, plain, expiresAt: 1001)
        let said = try stage.tick(after: 2000)
        #expect(
            said.first?.hasPrefix(
                "1 ← event: token_expired⏎data: {\"topic\":\"a\",\"event\":\"token_expired\",\"payload\":{\"code\":401,"
            ) == true)
        #expect(said.last == "close 1 1000 no channels")
    }

    /// Nothing would ever bring it the rows: it is to come back when there are some, and reads the rest until then.
    @Test func whoLacksRowsIsToComeBackWhenTheFeedIs() throws {
        let rows = #"{"topic":"r","config":{"postgres_changes":[{"event":"*","schema":"public","table":"t"}]}}"#
        for slot in Slot(1)...2 {
            #expect(try read(slot, plain, rows).allSatisfy { !$0.hasPrefix("begin") })
            let group = try #require(stage.subscribed.first)
            let said = try stage.watch { $0.changeSubscription(group, is: .unavailable) }
            #expect(said.contains { $0.contains(#"{"topic":"r","status":"error","code":503,"#) }, "\(said)")
            let isAway = slot == 1
            #expect(said.contains("close \(slot) 1000 come back") != isAway, "\(said)")
            let back = try stage.watch { $0.feedChanged(isReady: true) }
            #expect(back.contains("close 1 1000 come back") == isAway)
            try stage.disconnect(slot)
        }
    }

    /// The others of its channels would go on without it for ever.
    @Test func changesThatAreLostEndTheAnswer() throws {
        let rows = #"{"topic":"r","config":{"postgres_changes":[{"event":"*","schema":"public","table":"t"}]}}"#
        _ = try stage.watch { $0.feedChanged(isReady: true) }
        _ = try read(1, plain, rows)
        _ = try stage.watch { $0.changeSubscription(try #require(stage.subscribed.first), is: .live) }
        try stage.catchUp()
        let said = try stage.watch { $0.deliverEvent(.gap) }
        #expect(said.contains { $0.contains("event: closed") } && said.last == "close 1 1000 come back", "\(said)")
    }

    @Test func aReaderLeavesNothingBehind() throws {
        let stage = Stage(sessions: SessionRegistry(window: 60_000))
        let rows = #"{"topic":"a","config":{"postgres_changes":[{"event":"*","schema":"public","table":"t"}]}}"#
        let request = try EventRequest(channels: [rows], lastID: nil)
        for slot in Slot(1)...2 {
            _ = try stage.watch {
                $0.advanceTime(to: stage.now)
                $0.connectReader(
                    request, as: Self.events, on: slot, claims: Stage.claims("authenticated", subject: "ann"),
                    isPage: false)
            }
            for id in stage.subscribed { _ = try stage.watch { $0.changeSubscription(id, is: .live) } }
            #expect(
                stage.actions.contains { if case .recover = $0 { true } else { false } }, "asked of where it is now")
            _ = try stage.catchUp()
            #expect(stage.hub.acknowledgementPing(for: slot) == nil, "it is never pinged")
            try stage.disconnect(slot)
        }
        // A WebSocket of the same user with the same subscription misses nothing of theirs and waits for nobody.
        stage.connect(3, role: "authenticated", subject: "ann")
        let said = try stage.join(
            "realtime:a", 3, #"{"postgres_changes":[{"event":"*","schema":"public","table":"t"}]}"#)
        #expect(!said.contains { $0.hasPrefix("ask") || $0.hasPrefix("recover") })
    }
}
