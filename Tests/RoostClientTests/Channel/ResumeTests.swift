import RoostClient
import Testing

/// Row changes over losses.
@Suite struct ResumeTests {
    private func live(_ configure: (inout ChannelConfiguration) -> Void = { _ in }) -> Desk {
        let desk = Desk()
        desk.openRoom(configure)
        desk.goOnline()
        desk.follow(1, table: "t")
        desk.subscribe()
        desk.answerJoin(",\"resumed\":true")
        return desk
    }

    private func resume(_ desk: Desk) -> String? {
        desk.last("phx_join")?.payload["config"]?["resume"]?["cursor"]?.string
    }

    private func reloads(_ desk: Desk) -> Int {
        desk.channelActions.count { if case .expired = $0 { true } else { false } }
    }

    @Test func theNextJoinResumesBehindTheLastChange() {
        let desk = live()
        desk.hearChange(1, number: 40)
        desk.hearChange(2, number: 41)
        desk.socketEnds()
        desk.goOnline()
        #expect(resume(desk) == "window." + String(41, radix: 36))
        desk.answerJoin(",\"resumed\":true", cursor: nil)
        #expect(reloads(desk) == 0)
        #expect(desk.told.contains(.joined(resumed: true)))
    }

    @Test func withoutAnyChangeItResumesAtTheBeginning() {
        let desk = live()
        desk.socketEnds()
        desk.goOnline()
        #expect(resume(desk) == "start.1")
    }

    @Test func aStoredCursorIsResumedAt() {
        let desk = Desk()
        desk.openRoom { $0.resumeFrom = "stored.5" }
        desk.goOnline()
        desk.follow(1, table: "t")
        desk.subscribe()
        #expect(resume(desk) == "stored.5")
    }

    @Test func whatCannotBeResumedIsToldAndForgotten() {
        let desk = live()
        desk.hearChange(1, number: 40)
        desk.socketEnds()
        desk.goOnline()
        desk.answerJoin(",\"resumed\":false,\"reason\":\"too old\"", cursor: "fresh.9")
        #expect(reloads(desk) == 1)
        #expect(desk.told.contains(.reloadNeeded(reason: "too old")))
        desk.socketEnds()
        desk.goOnline()
        #expect(resume(desk) == "fresh.9")
    }

    @Test func aServerThatKnowsNothingOfResumingLeavesAGapThatIsTold() {
        let desk = Desk()
        desk.openRoom()
        desk.goOnline()
        desk.follow(1, table: "t")
        desk.subscribe()
        desk.answerJoin(cursor: nil)
        #expect(reloads(desk) == 0)
        desk.socketEnds()
        desk.goOnline()
        desk.answerJoin(cursor: nil)
        #expect(reloads(desk) == 1)
    }

    @Test func changesGoToWhoAskedForThem() {
        let desk = Desk()
        desk.openRoom()
        desk.goOnline()
        desk.follow(1, table: "a")
        desk.follow(2, table: "b")
        desk.follow(3, table: "a")
        desk.subscribe()
        #expect(desk.last("phx_join")?.payload["config"]?["postgres_changes"]?.elements.count == 2)
        desk.answerJoin()
        desk.hearChange(10, number: 1, ids: [1])
        desk.hearChange(11, number: 2, ids: [2])
        desk.hearChange(12, number: 3, ids: [2, 1])
        desk.hearChange(13, number: 4, ids: [99])
        #expect(desk.delivered.map(\.row) == [10, 11, 12])
        #expect(desk.delivered.map { $0.to.sorted() } == [[1, 3], [2], [1, 2, 3]])
    }

    @Test func aSequenceThatIsMadeLaterJoinsAgainWhereTheChannelIs() {
        let desk = live()
        desk.hearChange(1, number: 40)
        desk.follow(2, table: "other")
        desk.follow(3, table: "third")
        desk.pass(.milliseconds(20))
        // Both in one join.
        #expect(desk.joins == 2)
        #expect(resume(desk) == "window." + String(40, radix: 36))
        // Until the answer the old incarnation is what counts.
        desk.hearChange(2, number: 41)
        #expect(desk.delivered.map(\.row) == [1, 2])
        desk.answerJoin(",\"resumed\":true", cursor: nil)
        desk.hearChange(3, number: 42, ids: [2])
        #expect(desk.delivered.last?.to == [2])
    }

    @Test func anotherSequenceOfTheSameRowsNeedsNoJoin() {
        let desk = live()
        desk.follow(2, table: "t")
        desk.pass(.seconds(1))
        #expect(desk.joins == 1)
        desk.hearChange(1, number: 40)
        #expect(desk.delivered.last?.to == [1, 2])
    }

    @Test func whatNobodyReadsIsGivenBack() {
        let desk = live()
        desk.follow(2, table: "other")
        desk.pass(.milliseconds(20))
        desk.answerJoin(",\"resumed\":true", cursor: nil)
        desk.channel { channel, _, _, at in channel.remove(1, at) }
        desk.hearChange(1, number: 40, ids: [1])
        #expect(desk.delivered.isEmpty)
        desk.pass(.seconds(5))
        #expect(desk.joins == 3)
        #expect(desk.last("phx_join")?.payload["config"]?["postgres_changes"]?.elements.count == 1)
    }

    @Test func changesBeforeTheAnswerToAJoinAreLeftForTheNextOne() {
        let desk = live()
        desk.hearChange(1, number: 40)
        desk.socketEnds()
        desk.goOnline()
        desk.hearChange(2, number: 41)
        #expect(desk.delivered.map(\.row) == [1])
        desk.pass(.seconds(11))
        #expect(desk.joins == 3)
        #expect(resume(desk) == "window." + String(40, radix: 36))
    }

    @Test func broadcastsComeBackBehindTheLastOne() {
        let desk = Desk()
        desk.openRoom { $0.history = BroadcastHistory() }
        desk.goOnline()
        desk.subscribe()
        #expect(desk.last("phx_join")?.payload["config"]?["broadcast"]?["history"]?.bool == true)
        desk.answerJoin(",\"history\":{\"id\":\"h0\",\"since\":1}")
        desk.hear("broadcast", "{\"event\":\"e\",\"payload\":{},\"type\":\"broadcast\",\"meta\":{\"history\":\"h1\"}}")
        desk.socketEnds()
        desk.goOnline()
        let history = desk.last("phx_join")?.payload["config"]?["broadcast"]?["history"]
        #expect(history?["after"]?.string == "h1")
        desk.answerJoin(",\"history\":{\"id\":\"h9\",\"complete\":false,\"reason\":\"too old\"}")
        #expect(desk.told.contains(.historyIncomplete(reason: "too old")))
    }
}
