import RoostClient
import Testing
import Wire

@Suite struct ChannelJoinTests {
    private func client(_ configure: (inout ChannelConfiguration) -> Void = { _ in }) -> ClientHarness {
        let client = ClientHarness()
        client.openRoom(configure)
        client.goOnline()
        return client
    }

    @Test func theJoinSaysWhatWasConfigured() throws {
        let client = client {
            $0.isPrivate = true
            $0.receivesOwnBroadcasts = true
            $0.presence = .occupancy
            $0.history = BroadcastHistory(limit: 5)
        }
        client.input { $0.changeAppState(to: .inactive, $1) }
        client.follow(1, table: "messages", filter: "id=gt.7")
        client.subscribe()
        let (message, payload) = try #require(client.last("phx_join"))
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
        let client = client()
        client.follow(1, table: "t")
        client.subscribe()
        let message = try #require(client.last("phx_join")?.message)
        client.hear(
            "phx_reply", "{\"status\":\"ok\",\"response\":{\"postgres_changes\":[{\"id\":5}]}}",
            joinRef: message.joinRef,
            ref: message.ref)
        #expect(client.answers.isEmpty)
        client.hear(
            "system", "{\"extension\":\"postgres_changes\",\"status\":\"ok\",\"message\":\"Subscribed\"}",
            joinRef: message.joinRef)
        #expect(client.answers[100] == .some(nil))
    }

    @Test func aTableThatIsNotWatchedIsAnError() throws {
        let client = client()
        client.follow(1, table: "t")
        client.subscribe()
        let message = try #require(client.last("phx_join")?.message)
        client.hear(
            "phx_reply", "{\"status\":\"ok\",\"response\":{\"postgres_changes\":[{\"id\":5}]}}",
            joinRef: message.joinRef,
            ref: message.ref)
        client.hear(
            "system", "{\"extension\":\"postgres_changes\",\"status\":\"error\",\"message\":\"not watched\"}",
            joinRef: message.joinRef)
        #expect(client.answers[100] == .some(.subscription(reason: "not watched")))
        let failed = client.channelActions.contains { if case .failChanges = $0 { true } else { false } }
        #expect(failed)
    }

    @Test(arguments: [
        "Unauthorized: You do not have permissions to read from this Channel topic: x",
        "PrivateOnly: This project only allows private channels",
    ])
    func aRefusalForGoodEndsTheChannel(reason: String) {
        let client = client()
        client.subscribe()
        client.refuseLast("phx_join", reason)
        #expect(client.answers[100] == .some(.refused(reason: reason)))
        #expect(client.machine.channels.isEmpty)
        client.pass(.seconds(60))
        #expect(client.joins == 1)
    }

    @Test(arguments: [
        "RealtimeRestarting: Realtime is restarting, please standby", "UnableToConnectToProject: no",
        "ClientJoinRateLimitReached: Too many joins per second", "SomethingNew: nobody knows",
    ])
    func aRefusalForNowIsTriedAgain(reason: String) {
        let client = client()
        client.subscribe()
        for count in 2...5 {
            client.refuseLast("phx_join", reason)
            client.pass(.milliseconds(500 << (count - 2)))
            #expect(client.joins == count)
        }
        client.answerJoin()
        #expect(client.answers[100] == .some(nil))
    }

    @Test func aJoinWithoutAnAnswerIsRepeated() {
        let client = client()
        client.subscribe()
        client.pass(.seconds(11))
        #expect(client.joins == 2)
    }

    @Test func theHubsWordThatItIsOverIsFinal() throws {
        let client = client()
        client.subscribe()
        client.answerJoin()
        let ref = try #require(client.last("phx_join")?.message.ref)
        client.hear("phx_close", "{}", joinRef: "another", ref: "another")
        #expect(!client.machine.channels.isEmpty)
        client.hear("phx_close", "{}", joinRef: ref, ref: ref)
        #expect(client.machine.channels.isEmpty)
    }

    @Test func anErrorOfTheChannelIsComeBackFrom() throws {
        let client = client()
        client.subscribe()
        client.answerJoin()
        let ref = try #require(client.last("phx_join")?.message.ref)
        client.hear("phx_error", "{\"reason\":\"channel_crash\"}", joinRef: ref, ref: ref)
        client.pass(.seconds(1))
        #expect(client.joins == 2)
        #expect(client.channelEvents.contains(.lost(reason: "channel_crash")))
    }

    @Test func leaving() throws {
        let client = client()
        client.subscribe()
        client.answerJoin()
        client.channel { channel, _, refs, at in channel.leaveChannel(7, &refs, at) }
        let leave = try #require(client.last("phx_leave")?.message)
        #expect(leave.joinRef == client.last("phx_join")?.message.ref)
        #expect(client.answers[7] == nil)
        client.hear("phx_reply", "{\"status\":\"ok\",\"response\":{}}", joinRef: leave.joinRef, ref: leave.ref)
        #expect(client.answers[7] == .some(nil))
        #expect(client.machine.channels.isEmpty)
    }

    @Test func theAppStateIsToldOnceForTheSocket() {
        let client = client()
        client.machine.openChannel(2, "realtime:other", ChannelConfiguration())
        client.subscribe()
        client.answerJoin()
        client.input { machine, at in machine.withChannel(2, at) { $0.subscribe(nil, $1, &$2, at) } }
        client.input { $0.changeAppState(to: .background, $1) }
        client.input { $0.changeAppState(to: .background, $1) }
        #expect(client.sent.count { $0.event == "app_state" } == 1)
        #expect(client.last("app_state")?.payload.description == "{\"type\":\"app_state\",\"state\":\"background\"}")
        client.socketEnds()
        client.goOnline()
        #expect(client.last("phx_join")?.payload["config"]?["app_state"]?.string == "background")
    }
}
