import RoostClient
import Testing
import Wire

/// What a writer sends, over losses and refusals: each append is kept once, in order.
@Suite struct StreamWritingTests {
    private static let writer = 7

    private func stage(_ configure: (inout ChannelConfiguration) -> Void = { $0.isPrivate = true }) -> ClientHarness {
        let client = ClientHarness()
        client.topic = "realtime:stream:reply/1"
        client.openRoom(configure)
        client.goOnline()
        client.channel { channel, _, _, _ in channel.openWriter(Self.writer, name: "p", epoch: 2) }
        client.subscribe()
        return client
    }

    private func joined() -> ClientHarness {
        let client = stage()
        client.answerJoin()
        return client
    }

    private func order(_ client: ClientHarness, _ call: CallID, _ order: WriterOrder) {
        client.channel { channel, _, refs, at in channel.carryOut(order, of: Self.writer, call, &refs, at) }
    }

    private func append(_ client: ClientHarness, _ call: CallID, _ text: String) {
        order(client, call, .append(StreamPart(.text, Array(text.utf8))))
    }

    /// The writes that were sent, as `event: payload`.
    private func writes(_ client: ClientHarness) -> [String] {
        client.sent.compactMap { message in
            guard case .broadcast(let event, let payload, true) = message.body else { return nil }
            let start = #"{"producer":"p","epoch":2,"seq":"#
            return "\(event) " + String(decoding: payload, as: UTF8.self).replacing(start, with: "{")
        }
    }

    private func refs(_ client: ClientHarness) -> [String] {
        client.sent.filter { $0.event == "broadcast" }.compactMap(\.ref)
    }

    private func keep(_ client: ClientHarness, _ ref: String, _ end: Int = 1) {
        client.hear("phx_reply", "{\"status\":\"ok\",\"response\":{\"next\":\(end)}}", ref: ref)
    }

    private func refuse(_ client: ClientHarness, _ ref: String, _ reason: String) {
        client.hear("phx_reply", "{\"status\":\"error\",\"response\":{\"reason\":\"\(reason)\"}}", ref: ref)
    }

    private func failures(_ client: ClientHarness) -> [RoostError] {
        client.channelActions.compactMap { if case .writerFailed(_, let error) = $0 { error } else { nil } }
    }

    @Test func appendsAreNumberedAndSentAtOnce() {
        let client = joined()
        append(client, 1, "a\"")
        append(client, 2, "b")
        order(client, 3, .flush)
        #expect(writes(client) == [#"append {0,"delta":"a\""}"#, #"append {1,"delta":"b"}"#])
        #expect(client.answers[1] == .some(nil) && client.answers[2] == .some(nil) && client.answers[3] == nil)
        keep(client, refs(client)[0], 2)
        #expect(client.answers[3] == nil)
        keep(client, refs(client)[1], 3)
        #expect(client.answers[3] == .some(nil))
        order(client, 4, .flush)
        #expect(client.answers[4] == .some(nil), "nothing is left to be kept")
        order(client, 5, .append(StreamPart(.bytes, [0, 255])))
        order(client, 6, .close)
        #expect(writes(client).suffix(2) == [#"append {2,"base64":"AP8="}"#, "close {3}"])
        keep(client, refs(client)[3], 5)
        #expect(client.answers[6] == .some(nil))
        append(client, 7, "c")
        #expect(client.answers[7] == .some(.ended(reason: "The writer was closed already.")))
    }

    @Test func whatWasNotAnsweredIsSentAgainUnderItsNumber() {
        let client = joined()
        for (call, text) in zip(1..., ["a", "b", "c"]) { append(client, call, text) }
        keep(client, refs(client)[0])
        client.socketEnds()
        append(client, 4, "d")
        append(client, 5, "e")
        client.goOnline()
        #expect(writes(client).count == 3)
        client.answerJoin()
        #expect(
            writes(client).dropFirst(3) == [
                #"append {1,"delta":"b"}"#, #"append {2,"delta":"c"}"#, #"append {3,"delta":"de"}"#,
            ], "and what came meanwhile is one append")
        order(client, 6, .flush)
        // An answer to what was sent by the socket before means nothing any more.
        keep(client, refs(client)[2])
        for ref in refs(client).dropFirst(3) { keep(client, ref) }
        #expect(client.answers[6] == .some(nil))
        #expect(writes(client).count == 6)
    }

    @Test func messagesArePutTogetherAsAnArray() {
        let client = stage()
        for text in ["{}", "2"] { order(client, 1, .append(StreamPart(.messages, Array(text.utf8)))) }
        client.answerJoin()
        #expect(writes(client) == [#"append {0,"messages":[{},2]}"#])
    }

    @Test func onlySoManyAreOnTheirWay() throws {
        let client = joined()
        for call in 1...40 { append(client, call, "\(call % 10)") }
        #expect(writes(client).count == 16)
        keep(client, refs(client)[0])
        #expect(writes(client).count == 17)
        #expect(try #require(writes(client).last) == #"append {16,"delta":"789012345678901234567890"}"#)
    }

    @Test func whoAppendsFasterThanTheHubKeepsHasToWait() {
        let client = joined()
        let large = String(repeating: "x", count: 100_000)
        for call in 1...4 { append(client, call, large) }
        #expect(client.answers[2] == .some(nil) && client.answers[3] == nil && client.answers[4] == nil)
        client.channel { channel, _, _, _ in channel.cancelCall(4) }
        #expect(client.answers[4] == .some(.cancelled))
        keep(client, refs(client)[0])
        #expect(client.answers[3] == .some(nil))
        #expect(writes(client).count == 3, "what was taken back is not sent")
    }

    @Test func aRefusalForNowIsTriedAgainInOrder() {
        let client = joined()
        append(client, 1, "a")
        append(client, 2, "b")
        refuse(client, refs(client)[0], "StreamsFull: no room")
        // The number before it is missing: no reason to give up.
        refuse(client, refs(client)[1], "StreamOrder: not the next")
        #expect(writes(client).count == 2)
        client.pass(.seconds(1))
        #expect(writes(client).suffix(2) == [#"append {0,"delta":"a"}"#, #"append {1,"delta":"b"}"#])
        #expect(failures(client).isEmpty)
    }

    @Test func anAnswerThatDoesNotComeIsNotWaitedForForever() {
        let client = joined()
        append(client, 1, "a")
        client.pass(.seconds(10))
        #expect(writes(client) == [#"append {0,"delta":"a"}"#, #"append {0,"delta":"a"}"#])
    }

    @Test(arguments: [
        ("StreamCancelled: The stream was cancelled at 12 bytes: stop writing it", RoostError.streamCancelled(at: 12)),
        ("StreamEnded: The stream has ended at 7 bytes", .streamEnded(at: 7)),
        ("StreamFenced: x", .refused(reason: "StreamFenced: x")),
        ("Unauthorized: x", .refused(reason: "Unauthorized: x")),
    ])
    func aFinalRefusalEndsTheWriter(_ reason: String, _ error: RoostError) {
        let client = joined()
        append(client, 1, "a")
        order(client, 2, .flush)
        refuse(client, refs(client)[0], reason)
        #expect(client.answers[2] == .some(error))
        #expect(failures(client) == [error])
        // A refusal is that of one append: whoever comes behind it is told that the writer is closed.
        append(client, 3, "b")
        if case .refused = error {
            guard case .ended(let why)?? = client.answers[3] else {
                Issue.record("\(String(describing: client.answers[3]))")
                return
            }
            #expect(why.contains(reason) && why.contains("Make another writer"))
        } else {
            #expect(client.answers[3] == .some(error))
        }
        #expect(writes(client).count == 1)
    }

    @Test func aRefusalThatNobodyHeardOfIsToldOnce() {
        let client = joined()
        append(client, 1, "a")
        refuse(client, refs(client)[0], "Unauthorized: x")
        append(client, 2, "b")
        #expect(client.answers[2] == .some(.refused(reason: "Unauthorized: x")))
        append(client, 3, "c")
        guard case .ended?? = client.answers[3] else {
            Issue.record("\(String(describing: client.answers[3]))")
            return
        }
    }

    @Test(arguments: [("cancelled", RoostError.streamCancelled(at: 3)), ("aborted", .streamEnded(at: 3))])
    func anEndIsToldBeforeTheNextAppend(_ status: String, _ error: RoostError) {
        let client = joined()
        append(client, 1, "abc")
        client.hear(
            "broadcast",
            "{\"event\":\"stream\",\"payload\":{\"id\":\"7\",\"at\":0,\"delta\":\"abc\",\"next\":3,\"status\":\"\(status)\"}}"
        )
        append(client, 2, "d")
        #expect(client.answers[2] == .some(error))
        #expect(writes(client).count == 1)
    }

    @Test func aCloseIsToldByItsAnswer() {
        let client = joined()
        append(client, 1, "abc")
        order(client, 2, .close)
        client.hear(
            "broadcast", #"{"event":"stream","payload":{"id":"7","at":0,"delta":"abc","next":3,"status":"complete"}}"#)
        #expect(client.answers[2] == nil && failures(client).isEmpty)
        keep(client, refs(client)[1], 3)
        #expect(client.answers[2] == .some(nil))
    }

    @Test func aCloseWhoseRowIsRefusedLeavesTheWriterOpen() {
        let client = joined()
        append(client, 1, "a")
        order(client, 2, .close)
        keep(client, refs(client)[0])
        refuse(client, refs(client)[1], "StreamCloseFailed: no")
        #expect(client.answers[2] == .some(.refused(reason: "StreamCloseFailed: no")))
        append(client, 3, "b")
        #expect(writes(client).suffix(2) == ["close {1}", #"append {1,"delta":"b"}"#])
    }

    @Test func theEndOfTheChannelEndsTheWriter() {
        let client = stage()
        append(client, 1, "a")
        order(client, 2, .flush)
        client.refuseLast("phx_join", "Unauthorized: no")
        #expect(client.answers[2] == .some(.refused(reason: "Unauthorized: no")))
        #expect(failures(client) == [.refused(reason: "Unauthorized: no")])
    }

    @Test func aChannelThatAnswersNothingCannotBeWrittenBy() throws {
        let client = stage {
            $0.isPrivate = true
            $0.acknowledgesBroadcasts = false
        }
        append(client, 1, "a")
        guard case .refused = try #require(client.answers[1]) else {
            Issue.record("\(String(describing: client.answers[1]))")
            return
        }
    }

    // MARK: Reading, as far as the channel has a part in it

    @Test func whatIsMissingIsAskedForByAnotherJoin() {
        let client = joined()
        let frame = { (facts: String) in client.hear("broadcast", "{\"event\":\"stream\",\"payload\":{\(facts)}}") }
        frame(#""id":"7","at":0,"delta":"abc","next":3,"status":"open""#)
        frame(#""id":"7","at":5,"delta":"f","next":6"#)
        #expect(client.joins == 1)
        // Until the join is answered, frames are of the membership before it.
        frame(#""id":"7","at":3,"delta":"d","next":4"#)
        client.pass(.seconds(1))
        #expect(client.joins == 2)
        #expect(client.last("phx_join")?.payload["config"]?["stream"]?.description == #"{"id":"7","at":3}"#)
        client.answerJoin()
        frame(#""id":"7","at":3,"delta":"def","next":6,"status":"open""#)
        let news = client.channelActions.compactMap { if case .stream(let news) = $0 { news } else { nil } }
        #expect(news.map { String(decoding: $0.bytes, as: UTF8.self) } == ["abc", "def"])
    }

    @Test func aStreamBeyondTheBoundEndsTheChannel() {
        let client = stage {
            $0.isPrivate = true
            $0.maximumStreamBytes = 4
        }
        client.answerJoin()
        client.hear("broadcast", #"{"event":"stream","payload":{"id":"7","at":0,"delta":"abcde","next":5}}"#)
        #expect(client.last("phx_leave") != nil)
        guard case .failed(.ended) = client.channelEvents.last else {
            Issue.record("\(client.channelEvents)")
            return
        }
    }
}
