import RoostClient
import Testing
import Wire

/// Lists of rows in a channel: what joins ask for, and what the hub's answers mean.
@Suite struct ListJoinTests {
    private let client: ClientHarness

    init() {
        client = ClientHarness()
        client.openRoom()
        client.goOnline()
    }

    private func show(_ subscription: SubscriptionID, table: String = "t", stored: String? = nil) {
        let list = ListRequest(schema: "public", table: table, filter: "room=eq.1", order: .descending("at"), limit: 50)
        client.channel { channel, _, _, at in channel.addList(subscription, list, stored: stored, at) }
    }

    private var entries: [JSON] { client.last("phx_join")?.payload["config"]?["rows"]?.elements ?? [] }
    private var cursor: String? { client.last("phx_join")?.payload["config"]?["resume"]?["cursor"]?.string }

    private func say(_ message: String, _ more: String = "") {
        let join = client.last("phx_join")?.message
        client.hear(
            "system", "{\"extension\":\"rows\",\"status\":\"ok\",\"message\":\"\(message)\"\(more)}",
            joinRef: join?.joinRef)
    }

    /// What the hub says behind the answer to a join of which it reads so many lists.
    private func answer(_ more: String, lists: Int, problem: String? = nil) {
        guard let (message, payload) = client.last("phx_join") else { return }
        let count = payload["config"]?["postgres_changes"]?.elements.count ?? 0
        let ids = (0..<count).map { "{\"id\":\($0 + 1)}" }.joined(separator: ",")
        client.hear(
            "phx_reply", "{\"status\":\"ok\",\"response\":{\"postgres_changes\":[\(ids)]\(more)}}",
            joinRef: message.joinRef, ref: message.ref)
        if lists > 0 {
            say("Rows begin")
            client.hear(
                "postgres_changes",
                "{\"ids\":[\(count)],\"snapshot\":true,\"data\":{\"type\":\"INSERT\",\"record\":{\"id\":7},\"errors\":null}}"
            )
            let error = problem.map { ",\"error\":\"\($0)\"" } ?? ""
            let entries = (0..<lists).map { _ in "{\"table\":\"t\",\"count\":1\(error)}" }.joined(separator: ",")
            say("Rows are there", ",\"cursor\":\"rows.1\",\"rows\":[\(entries)]")
        }
        client.hear(
            "system",
            "{\"extension\":\"postgres_changes\",\"status\":\"ok\",\"message\":\"Subscribed\",\"cursor\":\"live.1\"}",
            joinRef: message.joinRef)
    }

    private var begun: [[SubscriptionID]] {
        client.channelActions.compactMap { if case .rowsBegin(let lists, _) = $0 { lists } else { nil } }
    }

    private var reloads: Int { client.channelActions.count { if case .expired = $0 { true } else { false } } }

    @Test func aJoinAsksForTheRowsAndTheNextOneForWhatChanged() {
        show(1)
        client.subscribe()
        #expect(
            entries.map(\.description) == [
                "{\"schema\":\"public\",\"table\":\"t\",\"filter\":\"room=eq.1\",\"order\":\"at.desc,id.desc\",\"limit\":62}"
            ])
        #expect(cursor == nil)
        answer(",\"resumed\":true", lists: 1)
        #expect(begun == [[1]])
        #expect(client.delivered.map(\.row) == [7])
        client.socketEnds()
        client.goOnline()
        #expect(cursor == "live.1" && entries.count == 1 && entries[0]["fresh"] == nil)
        answer(",\"resumed\":true", lists: 0)
        #expect(begun.count == 1)
        // Where the cursor is too old, the rows come anew, and nobody who hears changes alone is there to be told.
        client.socketEnds()
        client.goOnline()
        answer(",\"resumed\":false,\"reason\":\"old\"", lists: 1)
        #expect(begun == [[1], [1]])
    }

    @Test func aListThatComesLaterIsReadWithoutDisturbingOthers() {
        client.follow(1, table: "u")
        show(2)
        client.subscribe()
        answer(",\"resumed\":true", lists: 1)
        show(3)
        client.pass(.milliseconds(20))
        #expect(client.joins == 2 && cursor == "live.1")
        #expect(entries.map { $0["fresh"]?.bool ?? false } == [false, true])
        answer(",\"resumed\":true", lists: 1)
        #expect(begun == [[2], [3]] && reloads == 0)
        #expect(client.delivered.last?.to == [3], "the rows of one list are no changes of the other's")
    }

    @Test func aStoredListGoesOnWhereItWas() {
        show(1, stored: "disk.5")
        client.subscribe()
        #expect(cursor == "disk.5" && entries[0]["fresh"] == nil)
        answer(",\"resumed\":false,\"reason\":\"old\"", lists: 1)
        #expect(begun == [[1]] && reloads == 0)
    }

    @Test func listsThatWereStoredAtDifferentMomentsAreRead() {
        show(1, stored: "disk.5")
        show(2, table: "u", stored: "disk.6")
        client.subscribe()
        #expect(cursor == nil && entries.count == 2)
    }

    @Test func whoHearsChangesIsNotToldOfTheTimeBeforeIt() {
        show(1, stored: "disk.5")
        client.follow(2, table: "t")
        client.subscribe()
        #expect(cursor == nil)
    }

    @Test func whatCannotBeReadIsTriedAgain() {
        show(1)
        client.subscribe()
        answer(",\"resumed\":true", lists: 1, problem: "locked")
        #expect(client.joins == 1)
        client.pass(.seconds(5))
        #expect(client.joins == 2 && entries[0]["fresh"]?.bool == true)
        answer(",\"resumed\":true", lists: 1, problem: "locked")
        client.pass(.seconds(9))
        #expect(client.joins == 2)
        client.pass(.seconds(1))
        #expect(client.joins == 3)
    }

    @Test func aHubThatSendsNoRowsIsSaidToSendNone() {
        show(1)
        client.subscribe()
        answer(",\"resumed\":true", lists: 0)
        let problems = client.channelActions.compactMap { action -> String? in
            if case .rowsEnd(let answers, _) = action { answers[1]?.problem } else { nil }
        }
        #expect(problems.count == 1)
    }

    @Test func changesThatAreLostForGoodMakeListsRead() {
        show(1)
        client.subscribe()
        answer(",\"resumed\":true", lists: 1)
        client.hear(
            "system", "{\"extension\":\"postgres_changes\",\"status\":\"ok\",\"message\":\"ChangesLost: load again\"}",
            joinRef: client.last("phx_join")?.message.joinRef)
        client.pass(.milliseconds(20))
        #expect(client.joins == 2 && entries[0]["fresh"]?.bool == true && reloads == 1)
    }

    @Test func anEleventhListIsRefused() {
        for list in 1...11 { show(list) }
        let failed = client.channelActions.compactMap { action -> SubscriptionID? in
            if case .failList(let list, _) = action { list } else { nil }
        }
        #expect(failed == [11])
    }
}
