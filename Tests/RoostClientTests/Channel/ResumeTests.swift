import RoostClient
import Testing

/// Row changes over losses.
@Suite struct ResumeTests {
    private func live(_ configure: (inout ChannelConfiguration) -> Void = { _ in }) -> ClientHarness {
        let client = ClientHarness()
        client.openRoom(configure)
        client.goOnline()
        client.follow(1, table: "t")
        client.subscribe()
        client.answerJoin(",\"resumed\":true")
        return client
    }

    private func resume(_ client: ClientHarness) -> String? {
        client.last("phx_join")?.payload["config"]?["resume"]?["cursor"]?.string
    }

    private func reloads(_ client: ClientHarness) -> Int {
        client.channelActions.count { if case .expired = $0 { true } else { false } }
    }

    @Test func theNextJoinResumesBehindTheLastChange() {
        let client = live()
        client.hearChange(1, number: 40)
        client.hearChange(2, number: 41)
        client.socketEnds()
        client.goOnline()
        #expect(resume(client) == "window." + String(41, radix: 36))
        client.answerJoin(",\"resumed\":true", cursor: nil)
        #expect(reloads(client) == 0)
        #expect(client.channelEvents.contains(.joined(resumed: true)))
    }

    @Test func withoutAnyChangeItResumesAtTheBeginning() {
        let client = live()
        client.socketEnds()
        client.goOnline()
        #expect(resume(client) == "start.1")
    }

    @Test func aStoredCursorIsResumedAt() {
        let client = ClientHarness()
        client.openRoom { $0.resumeFrom = "stored.5" }
        client.goOnline()
        client.follow(1, table: "t")
        client.subscribe()
        #expect(resume(client) == "stored.5")
    }

    @Test func whatCannotBeResumedIsToldAndForgotten() {
        let client = live()
        client.hearChange(1, number: 40)
        client.socketEnds()
        client.goOnline()
        client.answerJoin(",\"resumed\":false,\"reason\":\"too old\"", cursor: "fresh.9")
        #expect(reloads(client) == 1)
        #expect(client.channelEvents.contains(.reloadNeeded(reason: "too old")))
        client.socketEnds()
        client.goOnline()
        #expect(resume(client) == "fresh.9")
    }

    @Test func aServerThatKnowsNothingOfResumingLeavesAGapThatIsTold() {
        let client = ClientHarness()
        client.openRoom()
        client.goOnline()
        client.follow(1, table: "t")
        client.subscribe()
        client.answerJoin(cursor: nil)
        #expect(reloads(client) == 0)
        client.socketEnds()
        client.goOnline()
        client.answerJoin(cursor: nil)
        #expect(reloads(client) == 1)
    }

    @Test func changesGoToWhoAskedForThem() {
        let client = ClientHarness()
        client.openRoom()
        client.goOnline()
        client.follow(1, table: "a")
        client.follow(2, table: "b")
        client.follow(3, table: "a")
        client.subscribe()
        #expect(client.last("phx_join")?.payload["config"]?["postgres_changes"]?.elements.count == 2)
        client.answerJoin()
        client.hearChange(10, number: 1, ids: [1])
        client.hearChange(11, number: 2, ids: [2])
        client.hearChange(12, number: 3, ids: [2, 1])
        client.hearChange(13, number: 4, ids: [99])
        #expect(client.delivered.map(\.row) == [10, 11, 12])
        #expect(client.delivered.map { $0.to.sorted() } == [[1, 3], [2], [1, 2, 3]])
    }

    @Test func aSequenceThatIsMadeLaterJoinsAgainWhereTheChannelIs() {
        let client = live()
        client.hearChange(1, number: 40)
        client.follow(2, table: "other")
        client.follow(3, table: "third")
        client.pass(.milliseconds(20))
        // Both in one join.
        #expect(client.joins == 2)
        #expect(resume(client) == "window." + String(40, radix: 36))
        // Until the answer the old incarnation is what counts.
        client.hearChange(2, number: 41)
        #expect(client.delivered.map(\.row) == [1, 2])
        client.answerJoin(",\"resumed\":true", cursor: nil)
        client.hearChange(3, number: 42, ids: [2])
        #expect(client.delivered.last?.to == [2])
    }

    @Test func anotherSequenceOfTheSameRowsNeedsNoJoin() {
        let client = live()
        client.follow(2, table: "t")
        client.pass(.seconds(1))
        #expect(client.joins == 1)
        client.hearChange(1, number: 40)
        #expect(client.delivered.last?.to == [1, 2])
    }

    @Test func whatNobodyReadsIsGivenBack() {
        let client = live()
        client.follow(2, table: "other")
        client.pass(.milliseconds(20))
        client.answerJoin(",\"resumed\":true", cursor: nil)
        client.channel { channel, _, _, at in channel.removeSequence(1, at) }
        client.hearChange(1, number: 40, ids: [1])
        #expect(client.delivered.isEmpty)
        client.pass(.seconds(5))
        #expect(client.joins == 3)
        #expect(client.last("phx_join")?.payload["config"]?["postgres_changes"]?.elements.count == 1)
    }

    @Test func changesBeforeTheAnswerToAJoinAreLeftForTheNextOne() {
        let client = live()
        client.hearChange(1, number: 40)
        client.socketEnds()
        client.goOnline()
        client.hearChange(2, number: 41)
        #expect(client.delivered.map(\.row) == [1])
        client.pass(.seconds(11))
        #expect(client.joins == 3)
        #expect(resume(client) == "window." + String(40, radix: 36))
    }

    @Test func broadcastsComeBackBehindTheLastOne() {
        let client = ClientHarness()
        client.openRoom { $0.history = BroadcastHistory() }
        client.goOnline()
        client.subscribe()
        #expect(client.last("phx_join")?.payload["config"]?["broadcast"]?["history"]?.bool == true)
        client.answerJoin(",\"history\":{\"id\":\"h0\",\"since\":1}")
        client.hear(
            "broadcast", "{\"event\":\"e\",\"payload\":{},\"type\":\"broadcast\",\"meta\":{\"history\":\"h1\"}}")
        client.socketEnds()
        client.goOnline()
        let history = client.last("phx_join")?.payload["config"]?["broadcast"]?["history"]
        #expect(history?["after"]?.string == "h1")
        client.answerJoin(",\"history\":{\"id\":\"h9\",\"complete\":false,\"reason\":\"too old\"}")
        #expect(client.channelEvents.contains(.historyIncomplete(reason: "too old")))
    }
}
