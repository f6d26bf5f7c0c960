import RoostClient
import Testing
import Wire

@Suite struct JoinTests {
    private func desk(_ configure: (inout ChannelConfiguration) -> Void = { _ in }) -> Desk {
        let desk = Desk()
        desk.openRoom(configure)
        desk.goOnline()
        return desk
    }

    @Test func theJoinSaysWhatWasConfigured() throws {
        let desk = desk {
            $0.isPrivate = true
            $0.receivesOwnBroadcasts = true
            $0.presence = .occupancy
            $0.history = BroadcastHistory(limit: 5)
        }
        desk.input { $0.change(to: .inactive, $1) }
        desk.follow(1, table: "messages", filter: "id=gt.7")
        desk.subscribe()
        let (message, payload) = try #require(desk.last("phx_join"))
        #expect(message.joinRef == message.ref)
        let config = try #require(payload["config"])
        #expect(config["private"]?.bool == true)
        #expect(config["broadcast"]?.description == "{\"self\":true,\"ack\":true,\"history\":{\"limit\":5}}")
        #expect(config["presence"]?.description == "{\"key\":\"me\",\"enabled\":false,\"occupancy\":true}")
        #expect(config["app_state"]?.string == "inactive")
        #expect(config["resume"]?.description == "{}")
        #expect(
            config["postgres_changes"]?.description
                == "[{\"event\":\"*\",\"schema\":\"public\",\"table\":\"messages\",\"filter\":\"id=gt.7\"}]")
        #expect(payload["access_token"]?.string == "token")
        #expect(try JSON(parsing: payload.bytes).kind == .object)
    }

    @Test func subscribedMeansThatRowChangesAreLive() throws {
        let desk = desk()
        desk.follow(1, table: "t")
        desk.subscribe()
        let message = try #require(desk.last("phx_join")?.message)
        desk.hear(
            "phx_reply", "{\"status\":\"ok\",\"response\":{\"postgres_changes\":[{\"id\":5}]}}",
            joinRef: message.joinRef,
            ref: message.ref)
        #expect(desk.answers.isEmpty)
        desk.hear(
            "system", "{\"extension\":\"postgres_changes\",\"status\":\"ok\",\"message\":\"Subscribed\"}",
            joinRef: message.joinRef)
        #expect(desk.answers[100] == .some(nil))
    }

    @Test func aTableThatIsNotWatchedIsAnError() throws {
        let desk = desk()
        desk.follow(1, table: "t")
        desk.subscribe()
        let message = try #require(desk.last("phx_join")?.message)
        desk.hear(
            "phx_reply", "{\"status\":\"ok\",\"response\":{\"postgres_changes\":[{\"id\":5}]}}",
            joinRef: message.joinRef,
            ref: message.ref)
        desk.hear(
            "system", "{\"extension\":\"postgres_changes\",\"status\":\"error\",\"message\":\"not watched\"}",
            joinRef: message.joinRef)
        #expect(desk.answers[100] == .some(.subscription(reason: "not watched")))
        let failed = desk.channelActions.contains { if case .failChanges = $0 { true } else { false } }
        #expect(failed)
    }

    @Test(arguments: [
        "Unauthorized: You do not have permissions to read from this Channel topic: x",
        "PrivateOnly: This project only allows private channels",
    ])
    func aRefusalForGoodEndsTheChannel(reason: String) {
        let desk = desk()
        desk.subscribe()
        desk.refuseLast("phx_join", reason)
        #expect(desk.answers[100] == .some(.refused(reason: reason)))
        #expect(desk.machine.channels.isEmpty)
        desk.pass(.seconds(60))
        #expect(desk.joins == 1)
    }

    @Test(arguments: [
        "RealtimeRestarting: Realtime is restarting, please standby", "UnableToConnectToProject: no",
        "ClientJoinRateLimitReached: Too many joins per second", "SomethingNew: nobody knows",
    ])
    func aRefusalForNowIsTriedAgain(reason: String) {
        let desk = desk()
        desk.subscribe()
        for count in 2...5 {
            desk.refuseLast("phx_join", reason)
            desk.pass(.milliseconds(500 << (count - 2)))
            #expect(desk.joins == count)
        }
        desk.answerJoin()
        #expect(desk.answers[100] == .some(nil))
    }

    @Test func aJoinWithoutAnAnswerIsRepeated() {
        let desk = desk()
        desk.subscribe()
        desk.pass(.seconds(11))
        #expect(desk.joins == 2)
    }

    @Test func theHubsWordThatItIsOverIsFinal() throws {
        let desk = desk()
        desk.subscribe()
        desk.answerJoin()
        let ref = try #require(desk.last("phx_join")?.message.ref)
        desk.hear("phx_close", "{}", joinRef: "another", ref: "another")
        #expect(!desk.machine.channels.isEmpty)
        desk.hear("phx_close", "{}", joinRef: ref, ref: ref)
        #expect(desk.machine.channels.isEmpty)
    }

    @Test func anErrorOfTheChannelIsComeBackFrom() throws {
        let desk = desk()
        desk.subscribe()
        desk.answerJoin()
        let ref = try #require(desk.last("phx_join")?.message.ref)
        desk.hear("phx_error", "{\"reason\":\"channel_crash\"}", joinRef: ref, ref: ref)
        desk.pass(.seconds(1))
        #expect(desk.joins == 2)
        #expect(desk.told.contains(.lost(reason: "channel_crash")))
    }

    @Test func leaving() throws {
        let desk = desk()
        desk.subscribe()
        desk.answerJoin()
        desk.channel { channel, _, refs, at in channel.leave(7, &refs, at) }
        let leave = try #require(desk.last("phx_leave")?.message)
        #expect(leave.joinRef == desk.last("phx_join")?.message.ref)
        #expect(desk.answers[7] == nil)
        desk.hear("phx_reply", "{\"status\":\"ok\",\"response\":{}}", joinRef: leave.joinRef, ref: leave.ref)
        #expect(desk.answers[7] == .some(nil))
        #expect(desk.machine.channels.isEmpty)
    }

    @Test func theAppStateIsToldOnceForTheSocket() {
        let desk = desk()
        desk.machine.open(2, "realtime:other", ChannelConfiguration())
        desk.subscribe()
        desk.answerJoin()
        desk.input { machine, at in machine.withChannel(2, at) { $0.subscribe(nil, $1, &$2, at) } }
        desk.input { $0.change(to: .background, $1) }
        desk.input { $0.change(to: .background, $1) }
        #expect(desk.sent.count { $0.event == "app_state" } == 1)
        #expect(desk.last("app_state")?.payload.description == "{\"type\":\"app_state\",\"state\":\"background\"}")
        desk.socketEnds()
        desk.goOnline()
        #expect(desk.last("phx_join")?.payload["config"]?["app_state"]?.string == "background")
    }
}
