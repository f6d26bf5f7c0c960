import Hub
import Streams
import TestSupport
import Testing
import Wire

/// Channels of streams, on a clock that is moved by hand: `{id, at, delta, next, status}`.
@Suite struct StreamChannelTests {
    private static let topic = "realtime:stream:reply/1"
    private let shelf = StreamShelf()

    private func stage() -> Stage { Stage(streams: shelf) }

    private func frame(_ slots: String, _ payload: String) -> String {
        "\(slots) ⇐ #4 \(Self.topic) stream json {\(payload)}"
    }

    @discardableResult private func join(_ stage: Stage, _ slot: Slot, _ config: String = "{}") throws -> [String] {
        stage.connect(slot)
        return try stage.joinPrivate(Self.topic, slot, config).filter { $0.contains("⇐") }
    }

    // MARK: What an operator sees

    @Test func watchersAreCountedAndTold() throws {
        let (stage, stream) = (stage(), try shelf.add("reply/1"))
        _ = stream.append(Array("Hello".utf8))
        try join(stage, 1)
        try join(stage, 2)
        #expect(stage.hub.counters.streamWatchers == (2, 0) && stage.hub.watcherCounts(of: stream.name) == (2, 0))
        #expect(stage.hub.watchers(of: stream.name, stream.id).map(\.offset) == [5, 5])
        #expect(stage.hub.watchers(of: stream.name, StreamID(8)).map(\.offset) == [0, 0], "they have another one")
        #expect(stage.hub.writers(of: stream.name).isEmpty)
        try stage.disconnect(1)
        #expect(stage.hub.counters.streamWatchers == (1, 0))
        #expect(stage.hub.watchers(of: stream.name, stream.id).map(\.slot) == [2])
        try stage.disconnect(2)
        #expect(stage.hub.counters.streamWatchers == (0, 0) && stage.hub.watcherCounts(of: stream.name) == (0, 0))
    }

    // MARK: Watching

    @Test func theFirstFrameHasAllAndLaterOnesWhatCame() throws {
        let (stage, stream) = (stage(), try shelf.add("reply/1"))
        _ = stream.append(Array("Hello".utf8))
        #expect(
            try join(stage, 1) == [frame("1", #""id":"7","at":0,"delta":"Hello","next":5,"status":"open""#)])
        try stage.tick(after: 40)
        #expect(
            try stage.append(", Grüße", to: stream) == [frame("1", #""id":"7","at":5,"delta":", Grüße","next":14"#)])
        #expect(try stage.news(of: stream).isEmpty, "nothing is said twice")
    }

    @Test func inVersion1FramesAreText() throws {
        let (stage, stream) = (stage(), try shelf.add("reply/1"))
        _ = stream.append(Array("a".utf8))
        stage.connect(1, .v1)
        try stage.joinV1(Self.topic, 1, #"{"private":true}"#)
        #expect(
            try stage.decide(.decided(.all)).last
                == #"1 ⇐ {"topic":"\#(Self.topic)","event":"broadcast","payload":{"event":"stream","payload":{"id":"7","at":0,"delta":"a","next":1,"status":"open"},"type":"broadcast"},"ref":null}"#
        )
    }

    @Test func newsAreGatheredForAWhileAndTheFirstComesAtOnce() throws {
        let (stage, stream) = (stage(), try shelf.add("reply/1"))
        try join(stage, 1)
        try stage.tick(after: 40)
        #expect(try stage.append("a", to: stream) == [frame("1", #""id":"7","at":0,"delta":"a","next":1"#)])
        for text in ["b", "c", "d"] { #expect(try stage.append(text, to: stream).isEmpty) }
        #expect(try stage.tick(after: 39).isEmpty)
        #expect(try stage.tick(after: 1) == [frame("1", #""id":"7","at":1,"delta":"bcd","next":4"#)])
        #expect(try stage.tick(after: 100).isEmpty)
    }

    @Test(arguments: [(0, 0), (500, 500), (9999, 500)]) func theJoinSaysHowOften(_ asked: Int, _ given: Int64) throws {
        let (stage, stream) = (stage(), try shelf.add("reply/1"))
        try join(stage, 1, #"{"stream":{"every_ms":\#(asked)}}"#)
        try stage.tick(after: 1000)
        #expect(try !stage.append("a", to: stream).isEmpty)
        #expect(try stage.append("b", to: stream).isEmpty == (given > 0))
        guard given > 0 else { return }
        #expect(try stage.tick(after: given - 1).isEmpty)
        #expect(try !stage.tick(after: 1).isEmpty)
    }

    @Test func watchersAtOnePlaceShareAFrame() throws {
        let (stage, stream) = (stage(), try shelf.add("reply/1"))
        for slot in Slot(1)...3 { try join(stage, slot) }
        try stage.tick(after: 40)
        #expect(try stage.append("x", to: stream) == [frame("1,2,3", #""id":"7","at":0,"delta":"x","next":1"#)])
    }

    @Test func anEndWaitsForNothing() throws {
        let (stage, stream) = (stage(), try shelf.add("reply/1"))
        try join(stage, 1)
        try stage.tick(after: 40)
        _ = try stage.append("a", to: stream)
        _ = stream.append(Array("b".utf8))
        let row = Array(#"{"id":5}"#.utf8)
        #expect(
            try stage.set(.ended(StreamEnding(.complete, at: 1, row: row)), of: stream)
                == [frame("1", #""id":"7","at":1,"delta":"b","next":2,"status":"complete","row":{"id":5}"#)])
    }

    @Test func aStallAndAReturnAreSaid() throws {
        let (stage, stream) = (stage(), try shelf.add("reply/1"))
        try join(stage, 1)
        try stage.tick(after: 40)
        #expect(try stage.set(.stalled, of: stream) == [frame("1", #""id":"7","at":0,"next":0,"status":"stalled""#)])
        try stage.tick(after: 40)
        _ = stream.setStatus(.open)
        #expect(
            try stage.append("a", to: stream) == [frame("1", #""id":"7","at":0,"delta":"a","next":1,"status":"open""#)])
    }

    @Test func messagesAndBytesHaveFormsOfTheirOwn() throws {
        let (stage, stream) = (stage(), try shelf.add("reply/1", "application/json"))
        _ = stream.append(Array("{\"n\":1}\n2\n".utf8))
        #expect(
            try join(stage, 1)
                == [frame("1", #""id":"7","at":0,"messages":[{"n":1},2],"next":10,"status":"open""#)])
        let other = self.stage()
        let sound = try shelf.add("reply/1", "audio/ogg")
        _ = sound.append([0, 255, 1])
        #expect(try join(other, 1) == [frame("1", #""id":"7","at":0,"base64":"AP8B","next":3,"status":"open""#)])
    }

    // MARK: Coming late, and again

    @Test func whoComesAgainGoesOnWhereItWas() throws {
        let (stage, stream) = (stage(), try shelf.add("reply/1"))
        _ = stream.append(Array("Grüße".utf8))
        #expect(
            try join(stage, 1, #"{"stream":{"id":"7","at":4}}"#)
                == [frame("1", #""id":"7","at":4,"delta":"ße","next":7,"status":"open""#)])
        let whole = #""id":"7","at":0,"delta":"Grüße","next":7,"status":"open""#
        #expect(try join(stage, 2, #"{"stream":{"id":"8","at":4}}"#) == [frame("2", whole)], "it was another stream")
        #expect(try join(stage, 3, #"{"stream":{"id":"7","at":3}}"#) == [frame("3", whole)], "within a character")
        #expect(try join(stage, 4, #"{"stream":{"id":"7","at":99}}"#) == [frame("4", whole)], "beyond the end")
    }

    @Test func aStreamThatIsMadeLaterBegins() throws {
        let stage = stage()
        #expect(try join(stage, 1).isEmpty)
        let stream = try shelf.add("reply/1")
        #expect(
            try stage.news(of: stream) == [frame("1", #""id":"7","at":0,"delta":"","next":0,"status":"open""#)])
    }

    @Test func aStreamThatIsDeletedAndMadeAgainIsAnother() throws {
        let (stage, stream) = (stage(), try shelf.add("reply/1"))
        _ = stream.append(Array("old".utf8))
        try join(stage, 1)
        shelf.remove(stream)
        #expect(try stage.news(of: stream) == [frame("1", #""id":"7","status":"deleted""#)])
        try stage.tick(after: 40)
        let next = try shelf.add("reply/1", id: 0xAB)
        _ = next.append(Array("new".utf8))
        #expect(
            try stage.news(of: next) == [frame("1", #""id":"ab","at":0,"delta":"new","next":3,"status":"open""#)])
    }

    /// Of several hubs this one may not have heard yet of what another has shown.
    @Test func whoComesFromAnotherHubWaitsUntilItIsKnownWhatThatHad() throws {
        let shelf = StreamShelf(isShared: true)
        let stage = Stage(streams: shelf)
        let returning = #"{"stream":{"id":"7","at":4}}"#
        #expect(try join(stage, 1, returning).isEmpty)
        let first = try #require(stage.streamQuestions.last)
        let stream = try shelf.add("reply/1")
        #expect(try stage.append("Grü", to: stream).isEmpty, "it has more than that")
        #expect(try stage.append("ße", to: stream).isEmpty)
        let rest = #""id":"7","at":4,"delta":"ße","next":7,"status":"open""#
        #expect(try stage.watch { $0.streamAnswered(first, .done(nil)) } == [frame("1", rest)])
        try stage.disconnect(1)
        shelf.remove(stream)
        try join(stage, 2, returning)
        let second = try #require(stage.streamQuestions.last)
        let gone = [frame("2", #""id":"7","status":"deleted""#)]
        #expect(try stage.watch { $0.streamAnswered(second, .refused(.notFound)) } == gone)
        try join(stage, 3, returning)
        let third = try #require(stage.streamQuestions.last)
        #expect(try stage.watch { $0.streamAnswered(third, .refused(.unavailable)) }.isEmpty, "nobody can tell")
    }

    @Test func whoComesAgainAndFindsNothingIsToldSo() throws {
        let stage = stage()
        #expect(
            try join(stage, 1, #"{"stream":{"id":"7","at":4}}"#) == [frame("1", #""id":"7","status":"deleted""#)])
        let next = try shelf.add("reply/1", id: 0xAB)
        #expect(
            try stage.news(of: next) == [frame("1", #""id":"ab","at":0,"delta":"","next":0,"status":"open""#)])
    }

    @Test func nobodyWatchesForThoseWhoLeft() throws {
        let (stage, stream) = (stage(), try shelf.add("reply/1"))
        try join(stage, 1)
        try join(stage, 2)
        #expect(shelf.watches("reply/1") == 1)
        try stage.disconnect(1)
        try stage.say(#"["1","9","\#(Self.topic)","phx_leave",{}]"#, from: 2)
        #expect(shelf.watches("reply/1") == 0)
        #expect(try stage.append("x", to: stream).isEmpty)
    }

    // MARK: Slow readers

    @Test func whoHasNoRoomGetsAllOfItLater() throws {
        let (stage, stream) = (stage(), try shelf.add("reply/1"))
        var full: Set<Slot> = []
        var awaited: [Slot] = []
        stage.hub.askForRoom(hasRoom: { !full.contains($0) }, awaitRoom: { awaited.append($0) })
        try join(stage, 1)
        try join(stage, 2)
        try stage.tick(after: 40)
        full = [2]
        #expect(try stage.append("a", to: stream) == [frame("1", #""id":"7","at":0,"delta":"a","next":1"#)])
        #expect(awaited == [2])
        for text in ["b", "c"] {
            try stage.tick(after: 40)
            #expect(try stage.append(text, to: stream).count == 1)
        }
        full = []
        #expect(
            try stage.watch { $0.roomBecameFree(2) } == [frame("2", #""id":"7","at":0,"delta":"abc","next":3"#)])
    }

    @Test func muchComesInPiecesAsTheSocketTakesThem() throws {
        let (stage, stream) = (stage(), try shelf.add("reply/1"))
        let text = String(repeating: "é", count: 300_000)
        _ = stream.append(Array(text.utf8))
        _ = stream.setStatus(.ended(StreamEnding(.complete, at: 1)))
        var awaited: [Slot] = []
        stage.hub.askForRoom(hasRoom: { _ in true }, awaitRoom: { awaited.append($0) })
        var frames = try join(stage, 1)
        var got = ""
        while let frame = frames.first {
            #expect(frames.count == 1)
            got += try #require(frame.firstMatch(of: /"delta":"(é*)"/)).output.1
            frames = frame.contains("complete") ? [] : try stage.watch { $0.roomBecameFree(1) }
        }
        #expect(got == text && awaited == [1, 1])
    }

    // MARK: Who may

    @Test func theChannelIsPrivate() throws {
        let stage = stage()
        stage.connect(1)
        #expect(
            try stage.join(Self.topic, 1).first?.contains("StreamTopic: The channel of a stream is private") == true)
        #expect(
            try stage.join("realtime:stream:a//b", 1, #"{"private":true}"#).first?.contains(
                "StreamTopic: A stream's name")
                == true)
    }

    @Test func withoutStreamsSuchTopicsAreAsAnyOther() throws {
        let stage = Stage()
        stage.connect(1)
        #expect(try stage.join(Self.topic, 1).first?.contains(#""status":"ok""#) == true)
    }

    @Test func whoMayNotReadIsSentNothing() throws {
        let (stage, stream) = (stage(), try shelf.add("reply/1"))
        stage.connect(1)
        try stage.joinPrivate(Self.topic, 1, reading: .presence)
        #expect(try stage.append("x", to: stream).isEmpty && shelf.watches("reply/1") == 0)
    }

    // MARK: Writing

    private static let ack = #"{"broadcast":{"ack":true}}"#

    private func say(_ event: String, _ payload: String, ref: Int = 5) -> String {
        #"["1","\#(ref)","\#(Self.topic)","broadcast",{"type":"broadcast","event":"\#(event)","payload":\#(payload)}]"#
    }

    private func writer(_ may: ChannelExtensions = .broadcast) throws -> Stage {
        let stage = stage()
        try join(stage, 1, Self.ack)
        try stage.say(say("append", #"{"delta":"a"}"#, ref: 2), from: 1)
        try stage.decide(.decided(may))
        return stage
    }

    private func reply(_ ref: Int, _ payload: String) -> String {
        #"1 ← ["1","\#(ref)","\#(Self.topic)","phx_reply",\#(payload)]"#
    }

    @Test func appendsAreAskedForInOrderAndAnsweredWhenTheyAreDone() throws {
        let stage = try writer()
        var asked: [String] = []
        asked += try stage.say(say("append", #"{"delta":"b"}"#), from: 1)
        asked += try stage.say(say("append", #"{"messages":[1,{}]}"#), from: 1)
        asked += try stage.say(say("append", #"{"base64":"YWI="}"#), from: 1)
        asked += try stage.say(say("close", #"{"delta":"."}"#, ref: 6), from: 1)
        #expect(
            asked == [
                "stream reply/1 append b", "stream reply/1 append [1,{}]", "stream reply/1 append ab",
                "stream reply/1 append . close",
            ])
        let id = try #require(stage.streamQuestions.last)
        let name = try #require(StreamName("reply/1"))
        let snapshot = StreamSnapshot(
            id: StreamID(7), name: name, configuration: StreamConfiguration(contentType: "text/plain"), end: 9,
            status: .open)
        #expect(
            try stage.watch { $0.streamAnswered(id, .appended(snapshot, isRepeated: false, stamp: nil)) }
                == [reply(6, #"{"status":"ok","response":{"next":9}}"#)])
        #expect(try stage.watch { $0.streamAnswered(id, .done(nil)) }.isEmpty, "once")
    }

    @Test func theFirstAppendHoldsTheStreamAndTheEndOfTheMemberReleasesIt() throws {
        let stage = stage()
        try join(stage, 1)
        try stage.say(say("append", #"{"delta":"a"}"#), from: 1)
        #expect(try stage.decide(.decided(.broadcast)) == ["stream reply/1 hold", "stream reply/1 append a"])
        #expect(try stage.disconnect(1) == ["stream reply/1 release"])
    }

    @Test func whoMayNotWriteIsRefused() throws {
        let stage = try writer(.cancel)
        #expect(try stage.say(say("append", #"{"delta":"b"}"#), from: 1).first?.contains("Unauthorized") == true)
        #expect(try stage.say(say("cancel", "{}"), from: 1) == ["authorize anon cancel stream:reply/1"])
        #expect(try stage.decide(.decided(.cancel)) == ["stream reply/1 cancel"])
    }

    @Test func whoMayWriteMayCancel() throws {
        let stage = try writer()
        try stage.say(say("cancel", "{}"), from: 1)
        #expect(try stage.decide(.decided(.broadcast)) == ["stream reply/1 cancel"])
    }

    @Test(arguments: [
        #"{"delta":1}"#, #"{"messages":{}}"#, #"{"base64":"*"}"#, #"{"delta":"a","producer":"p"}"#,
        #"{"delta":"a","producer":"","seq":0}"#, #"{"delta":"a","producer":"p","seq":-1}"#,
        #"{"delta":"a","producer":"p","seq":0,"epoch":9007199254740992}"#,
        #"{"delta":"a","producer":"p","seq":0,"epoch":9223372036854775807}"#,
    ])
    func whatIsNoAppendIsRefused(_ payload: String) throws {
        let stage = try writer()
        #expect(try stage.say(say("append", payload), from: 1).first?.contains("\"reason\":\"Stream") == true)
    }

    @Test func anAppendBehindACancelIsToldWhereTheEndIs() throws {
        let stage = try writer()
        try stage.say(say("append", #"{"delta":"b"}"#), from: 1)
        let id = try #require(stage.streamQuestions.last)
        let name = try #require(StreamName("reply/1"))
        let snapshot = StreamSnapshot(
            id: StreamID(7), name: name, configuration: StreamConfiguration(contentType: "text/plain"), end: 9,
            status: .ended(StreamEnding(.cancelled, at: 1)))
        #expect(
            try stage.watch { $0.streamAnswered(id, .refused(.ended(snapshot))) } == [
                reply(
                    5,
                    #"{"status":"error","response":{"error":"StreamCancelled","reason":"StreamCancelled: The stream was cancelled at 9 bytes: stop writing it"}}"#
                )
            ])
    }

    @Test func aCloseWhoseRowIsRefusedIsToldWhy() throws {
        let stage = try writer()
        try stage.say(say("close", "{}"), from: 1)
        let id = try #require(stage.streamQuestions.last)
        #expect(
            try stage.watch { $0.streamAnswered(id, .refused(.closeFailed("no such column"))) } == [
                reply(
                    5,
                    #"{"status":"error","response":{"error":"StreamCloseFailed","reason":"StreamCloseFailed: The stream is still open, because the statement of streams.on_close failed: no such column"}}"#
                )
            ])
    }

    /// Who may write could else go on behind a cancel.
    @Test func nobodyElseSaysWhatTheHubSays() throws {
        let stage = try writer()
        #expect(
            try stage.say(say("stream", #"{"id":"7","at":0,"delta":"forged"}"#), from: 1).first?
                .contains("ReservedEvent: Broadcasts of `stream`") == true)
        let twice = #"["1","5","\#(Self.topic)","broadcast",{"event":"x","event":"str\u0065am","payload":{}}]"#
        #expect(try stage.say(twice, from: 1).first?.contains("ReservedEvent") == true)
        let kind3 = [3, 1, 1, UInt8(Self.topic.utf8.count), 6, 0, 1] + Array("15\(Self.topic)stream{}".utf8)
        #expect(try stage.say(kind3, from: 1).first?.contains("ReservedEvent") == true)
    }

    @Test func whatIsSaidBeforeTheJoinIsAnsweredIsAppended() throws {
        let stage = stage()
        stage.connect(1)
        let asked = try stage.join(Self.topic, 1, #"{"private":true}"#)
        #expect(asked.count == 1)
        let reading = stage.asked
        #expect(try stage.say(say("append", #"{"delta":"early"}"#), from: 1).isEmpty)
        _ = try stage.watch { hub in for id in reading { hub.receiveAuthorization(id, is: .decided(.all)) } }
        #expect(try stage.decide(.decided(.broadcast)) == ["stream reply/1 hold", "stream reply/1 append early"])
    }

    @Test func otherBroadcastsGoToTheOthers() throws {
        let stage = try writer()
        try join(stage, 2)
        let said = try stage.say(say("thumbs_up", "{}"), from: 1)
        #expect(said.contains { $0.hasPrefix("2 ⇐") && $0.contains("thumbs_up") })
    }

    /// Room on its socket does not bring it what it was waiting for.
    @Test func whoseTokenHasRunOutIsToldNothing() throws {
        var limits = HubLimits()
        limits.tokenGrace = 30
        let stream = try shelf.add("reply/1")
        let stage = Stage(limits: limits, streams: shelf)
        var full: Set<Slot> = []
        stage.hub.askForRoom(hasRoom: { !full.contains($0) }, awaitRoom: { _ in })
        stage.connect(1, subject: "ann", expiresAt: 1010)
        stage.connect(2, subject: "bob")
        for slot in [1, 2] as [Slot] { try stage.joinPrivate(Self.topic, slot) }
        try stage.tick(after: 1000)
        full = [1]
        let first = frame("2", #""id":"7","at":0,"delta":"secret","next":6"#)
        #expect(try stage.append("secret", to: stream) == [first])
        try stage.tick(after: 9000)
        full = []
        #expect(try stage.watch { $0.roomBecameFree(1) }.isEmpty)
        #expect(try stage.append("s", to: stream) == [frame("2", #""id":"7","at":6,"delta":"s","next":7"#)])
        try stage.say(
            #"["1","8","\#(Self.topic)","access_token",{"access_token":"good anon 9000 ann"}]"#, from: 1)
        #expect(try stage.decide(.decided(.all)).contains { $0.hasPrefix("1 ") && $0.contains("secrets") })
    }

    /// Readers with rooms and rhythms of their own, who leave and come again: what each has put together is the stream.
    @Test(arguments: 0..<10) func whateverHappensTheTextIsWhole(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let (stage, stream) = (stage(), try shelf.add("reply/1"))
        var full: Set<Slot> = []
        stage.hub.askForRoom(hasRoom: { !full.contains($0) }, awaitRoom: { _ in })
        var said = ""
        var got: [Slot: (text: String, next: Int)] = [:]
        var joined: Set<Slot> = []
        func take(_ frames: [String]) throws {
            for frame in frames {
                guard let match = frame.firstMatch(of: /^([0-9,]+) ⇐ .*"at":(\d+)(?:,"delta":"([^"]*)")?,"next":(\d+)/)
                else { continue }
                for slot in match.output.1.split(separator: ",").compactMap({ Slot($0) }) {
                    #expect(Int(match.output.2) == got[slot]?.next ?? 0)
                    got[slot, default: ("", 0)].text += match.output.3 ?? ""
                    got[slot]?.next = Int(match.output.4) ?? -1
                }
            }
        }
        for step in 0..<400 {
            let slot = Slot.random(in: 1...5, using: &random)
            switch Int.random(in: 0..<8, using: &random) {
            case 0 where !joined.contains(slot):
                joined.insert(slot)
                let at = got[slot]?.next ?? 0
                try take(
                    try join(
                        stage, slot,
                        #"{"stream":{"id":"7","at":\#(at),"every_ms":\#(Int.random(in: 0...90, using: &random))}}"#))
            case 1 where joined.contains(slot):
                joined.remove(slot)
                full.remove(slot)
                try take(try stage.disconnect(slot))
            case 2: full.insert(slot)
            case 3 where full.contains(slot):
                full.remove(slot)
                try take(try stage.watch { $0.roomBecameFree(slot) })
            case 4, 5: try take(try stage.tick(after: Int64.random(in: 0...50, using: &random)))
            default:
                let piece = ["ä", "b\(step)", "🐦 "].randomElement(using: &random) ?? ""
                said += piece
                try take(try stage.append(piece, to: stream))
            }
        }
        full = []
        for slot in Slot(1)...5 where !joined.contains(slot) {
            try take(try join(stage, slot, #"{"stream":{"id":"7","at":\#(got[slot]?.next ?? 0)}}"#))
        }
        for slot in Slot(1)...5 { try take(try stage.watch { $0.roomBecameFree(slot) }) }
        try take(try stage.set(.ended(StreamEnding(.complete, at: 1)), of: stream))
        for slot in Slot(1)...5 { #expect(got[slot]?.text == said, "slot \(slot)") }
    }
}

extension Stage {
    /// The numbers of what the last actions asked of streams.
    var streamQuestions: [Int] {
        actions.compactMap { if case .stream(let id, _, _) = $0 { id } else { nil } }
    }
}
