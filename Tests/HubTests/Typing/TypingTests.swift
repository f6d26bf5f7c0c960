import Hub
import Matching
import Testing
import Wire

/// Typing: what members are told of it, and what ends it.
@Suite struct TypingTests {
    /// Ada on slots 1 and 3, Bob on 2 with the first version of the protocol.
    private func stage(_ rules: TypingRules = TypingRules(), loop: Int = 0) throws -> Stage {
        let stage = Stage(loop: loop, presence: .plain, typing: rules)
        stage.connect(1, subject: "ada")
        stage.connect(2, .v1, subject: "bob")
        try stage.join("realtime:a", 1)
        try stage.joinV1("realtime:a", 2)
        stage.now = stage.now.advanced(by: 200_000)
        return stage
    }

    private func say(_ stage: Stage, _ isTyping: Bool, from slot: Slot = 1, name: String = "Ada") throws -> [String] {
        try stage.say(
            #"["1","5","realtime:a","broadcast",{"type":"broadcast","event":"typing","payload":{"typing":\#(isTyping),"name":"\#(name)"}}]"#,
            from: slot)
    }

    private func wake(_ stage: Stage, after milliseconds: Int64) throws -> [String] {
        stage.now = stage.now.advanced(by: milliseconds)
        return try stage.watch { $0.wake(at: stage.now) }
    }

    private func told(_ said: [String]) -> [String] { said.filter { $0.contains("⇐") } }

    private func frame(_ isTyping: Bool) -> String {
        #"2 ⇐ {"topic":"realtime:a","event":"broadcast","payload":{"type":"broadcast","event":"typing","payload":{"typing":\#(isTyping),"name":"Ada"}},"ref":null}"#
    }

    @Test func silenceEndsIt() throws {
        let stage = try stage()
        #expect(try say(stage, true) == [frame(true), "relay typing realtime:a"].sorted { $0 > $1 })
        #expect(stage.hub.nextDue == stage.now.monotonic + 3000)
        #expect(try wake(stage, after: 2999).isEmpty)
        #expect(try wake(stage, after: 1) == [frame(false)])
        _ = try wake(stage, after: 3000)
        #expect(stage.hub.nextDue == nil)
    }

    @Test func repeatedStartsAreThinnedOutAndRenewIt() throws {
        let stage = try stage()
        var starts = told(try say(stage, true)).count
        for _ in 0..<50 {
            stage.now = stage.now.advanced(by: 100)
            starts += told(try say(stage, true)).count
        }
        #expect(starts == 6, "at once, and then each second")
        #expect(try wake(stage, after: 2999).isEmpty)
        #expect(try wake(stage, after: 1) == [frame(false)])
    }

    @Test func aStopIsPassedOnOnce() throws {
        let stage = try stage()
        #expect(told(try say(stage, false)) == [frame(false)], "the app may have its reasons")
        #expect(told(try say(stage, false)).isEmpty)
        #expect(told(try say(stage, true)) == [frame(true)], "it is no start that has to wait")
        #expect(told(try say(stage, false)) == [frame(false)])
        #expect(told(try say(stage, false)).isEmpty)
        // Nobody is told of the end that the hub has told of.
        _ = try wake(stage, after: 5000)
        _ = try say(stage, true)
        #expect(try wake(stage, after: 3000) == [frame(false)])
        #expect(told(try say(stage, false)).isEmpty)
        _ = try wake(stage, after: 5000)
        #expect(stage.hub.nextDue == nil)
    }

    private func say(_ stage: Stage, _ payload: String, from slot: Slot = 1) throws -> [String] {
        told(
            try stage.say(
                #"["1","5","realtime:a","broadcast",{"type":"broadcast","event":"typing","payload":\#(payload)}]"#,
                from: slot))
    }

    /// The hub drops what is the same again, and nothing else.
    @Test func whatSaysSomethingElseIsPassedOnAsItIs() throws {
        let stage = try stage()
        for name in ["A", "Ad", "Ada"] {
            #expect(try say(stage, #"{"typing":true,"name":"\#(name)"}"#).count == 1)
            #expect(try say(stage, #"{"typing":true,"name":"\#(name)"}"#).isEmpty)
        }
        let stop = try say(stage, #"{"name":"Ada L.","typing":false}"#)
        #expect(stop.first?.contains(#""payload":{"name":"Ada L.","typing":false}"#) == true)
        #expect(try say(stage, #"{"name":"Ada Lovelace","typing":false}"#).count == 1)
        #expect(try wake(stage, after: 5000).isEmpty)
    }

    /// An app's own event of that name: all of it is passed on, and nothing is made up.
    @Test func anEventThatSaysMoreIsTheApps() throws {
        let stage = try stage()
        var heard: [String] = []
        for draft in ["h", "he", "he", "hel", "hello"] {
            heard += try say(stage, #"{"typing":true,"draft":"\#(draft)"}"#)
        }
        heard += try say(stage, #"{"typing":false,"draft":""}"#)
        heard += try say(stage, #"{"typing":true,"typing":false}"#)
        #expect(heard.count == 7)
        #expect(stage.hub.nextDue == nil)
        #expect(try wake(stage, after: 5000).isEmpty)
    }

    /// Who was taken for a typist and says more is none any more.
    @Test func nothingIsMadeUpForWhoMeansSomethingElse() throws {
        let (stage, there) = (try stage(), try self.stage(loop: 1))
        _ = try say(stage, true)
        _ = try there.watch { hub in for relay in stage.relays { hub.applyRelay(relay) } }
        #expect(try say(stage, #"{"typing":true,"draft":"h"}"#).count == 1)
        #expect(
            try there.watch { hub in for relay in stage.relays { hub.applyRelay(relay) } }.count == 2,
            "for each version")
        #expect(try wake(stage, after: 5000).isEmpty)
        #expect(try wake(there, after: 5000).isEmpty)
        _ = try stage.disconnect(1)
        #expect(stage.relays.isEmpty)
    }

    @Test(arguments: [
        #"{"typing":true}"#, #"{"typing":true,"user_id":"u","userID":"u","displayName":"Ü"}"#,
        #"{"typing":true,"user":{"id":7,"name":"Ü","avatar_url":"https://x"},"conversation_id":5,"started_at":"now"}"#,
        #"{"type":"typing","typing":true,"ts":17,"AVATAR":null}"#,
    ]) func whoTypesAndWhereIsPartOfASign(_ payload: String) throws {
        let stage = try stage()
        #expect(try say(stage, payload).count == 1)
        #expect(try wake(stage, after: 3000).count == 1)
    }

    @Test(arguments: [
        #"{"typing":true,"draft":"h"}"#, #"{"typing":true,"text":""}"#, #"{"typing":true,"score":3}"#,
        #"{"typing":true,"user":{"id":7,"draft":"h"}}"#, #"{"typing":true,"ids":[1]}"#, #"{"typing":true,"grid":1}"#,
    ]) func whatIsTypedIsNot(_ payload: String) throws {
        let stage = try stage()
        for _ in 0..<2 { #expect(try say(stage, payload).count == 1) }
        #expect(try wake(stage, after: 3000).isEmpty)
    }

    @Test func aStartRightAfterAStopIsToldWhenItsSecondIsOver() throws {
        let stage = try stage()
        _ = try say(stage, true)
        _ = try say(stage, false)
        stage.now = stage.now.advanced(by: 200)
        #expect(told(try say(stage, true)).isEmpty)
        #expect(try wake(stage, after: 799).isEmpty)
        #expect(try wake(stage, after: 1) == [frame(true)])
        // One that is over by then is not.
        _ = try say(stage, false)
        _ = try say(stage, true)
        _ = try say(stage, false)
        #expect(try wake(stage, after: 5000).isEmpty)
    }

    @Test func aLossOrALeaveEndsItAtOnce() throws {
        var stage = try stage()
        _ = try say(stage, true)
        #expect(try stage.disconnect(1) == [frame(false), "relay typing ended realtime:a"].sorted { $0 > $1 })
        stage = try self.stage()
        _ = try say(stage, true)
        #expect(told(try stage.say(#"["1","6","realtime:a","phx_leave",{}]"#, from: 1)) == [frame(false)])
        stage = try self.stage()
        _ = try say(stage, true)
        #expect(told(try stage.join("realtime:a", 1, ref: "7")) == [frame(false)])
    }

    /// The socket that typed last counts.
    @Test func aUserIsOneTypist() throws {
        let stage = try stage()
        stage.connect(3, subject: "ada")
        try stage.join("realtime:a", 3)
        _ = try say(stage, true)
        #expect(told(try say(stage, true, from: 3)).isEmpty)
        #expect(told(try stage.disconnect(1)).isEmpty)
        #expect(told(try say(stage, false, from: 3)).count == 1)
    }

    @Test func binaryMessagesAreUnderstoodAndEndedInTheirOwnForm() throws {
        let stage = try stage()
        stage.connect(3)
        try stage.join("realtime:a", 3)
        let head: [UInt8] = [3, 1, 1, 10, 6, 0, 1] + Array("16realtime:atyping".utf8)
        let started = try stage.say(head + Array(#"{"user":7,"typing":true}"#.utf8), from: 1)
        #expect(
            Set(told(started)) == [
                #"2 ⇐ {"topic":"realtime:a","event":"broadcast","payload":{"event":"typing","payload":{"user":7,"typing":true},"type":"broadcast"},"ref":null}"#,
                #"3 ⇐ #4 realtime:a typing json {"user":7,"typing":true}"#,
            ])
        #expect(
            Set(try wake(stage, after: 3000)) == [
                #"2 ⇐ {"topic":"realtime:a","event":"broadcast","payload":{"event":"typing","payload":{"user":7,"typing":false},"type":"broadcast"},"ref":null}"#,
                #"3 ⇐ #4 realtime:a typing json {"user":7,"typing":false}"#,
            ])
    }

    @Test func anEchoIsForWhoAskedForOneAndSoIsAnAcknowledgement() throws {
        let stage = Stage(presence: .plain)
        stage.connect(1)
        try stage.join("realtime:a", 1, #"{"broadcast":{"self":true,"ack":true}}"#)
        #expect(try say(stage, true).count == 3)
        #expect(try say(stage, true).count == 2, "acknowledged, also where nobody is told")
        #expect(try wake(stage, after: 3000).first?.hasPrefix("1 ⇐") == true)
    }

    @Test func whatIsNoSignIsPassedOn() throws {
        let stage = try stage()
        for payload in [#"{"typing":"yes"}"#, "{}", #"{"typing":true,"x":"\#(String(repeating: "x", count: 5000))"}"#] {
            for _ in 0..<2 {
                let said = try stage.say(
                    #"["1","5","realtime:a","broadcast",{"type":"broadcast","event":"typing","payload":\#(payload)}]"#,
                    from: 1)
                #expect(told(said).count == 1)
            }
        }
        #expect(stage.hub.nextDue == nil)
    }

    @Test func offItIsABroadcastLikeAnyOther() throws {
        var rules = TypingRules()
        rules.isOn = false
        let stage = try stage(rules)
        for _ in 0..<3 { #expect(told(try say(stage, true)).count == 1) }
        #expect(stage.hub.nextDue == nil)
    }

    /// What clients send while they are not joined comes by HTTP.
    @Test func typingByHTTPIsItsUsers() throws {
        let stage = try stage()
        let message = BroadcastMessage.text(
            Array(#"{"type":"broadcast","event":"typing","payload":{"typing":true,"name":"Ada"}}"#.utf8))
        let key = ChannelKey(topic: "realtime:a", isPrivate: false)
        _ = try wake(stage, after: 1)
        #expect(told(try stage.watch { $0.publishMessage(message, to: key, by: "ada") }).count == 2)
        #expect(told(try say(stage, true)).isEmpty, "the same user")
        #expect(told(try say(stage, false)).count == 1)
        #expect(told(try stage.watch { $0.publishMessage(message, to: key) }).count == 2, "nobody known")
        #expect(told(try wake(stage, after: 3000)).count == 2)
        // Nobody is there, and nobody is told; but who comes is.
        let other = ChannelKey(topic: "realtime:b", isPrivate: false)
        _ = try stage.watch { $0.publishMessage(message, to: other, by: "ada") }
        #expect(try stage.join("realtime:b", 1).last?.contains("typing_state") == true)
        try stage.say(#"["1","6","realtime:b","phx_leave",{}]"#, from: 1)
        _ = try wake(stage, after: 3000)
        _ = try wake(stage, after: 3000)
        #expect(stage.hub.channelCount == 1)
    }

    // MARK: Joiners

    @Test func whoJoinsIsToldWhoTypes() throws {
        let stage = try stage()
        _ = try say(stage, true)
        stage.connect(3)
        #expect(
            try stage.join("realtime:a", 3).last
                == #"3 ← [null,null,"realtime:a","broadcast",{"event":"typing_state","payload":{"typing":[{"typing":true,"name":"Ada"}],"count":1},"type":"broadcast"}]"#
        )
        _ = try say(stage, false)
        stage.connect(4)
        #expect(try stage.join("realtime:a", 4).last?.contains(#"{"typing":[],"count":0}"#) == true)
        stage.now = stage.now.advanced(by: 120_000)
        stage.connect(5)
        #expect(try stage.join("realtime:a", 5).count == 1, "nobody remembers")
    }

    // MARK: Messages

    private func change(_ group: ChangeGroupID, _ data: String, _ operation: RowChange.Operation = .insert) -> FeedEvent
    {
        .change(ChangeDelivery(group: group, operation: operation, ids: [1], data: Array(data.utf8)))
    }

    private func subscribed(_ stage: Stage) throws -> ChangeGroupID {
        stage.connect(4)
        try stage.join("realtime:a", 4, #"{"postgres_changes":[{"event":"*","schema":"public","table":"messages"}]}"#)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        return group
    }

    @Test func theUsersOwnMessageEndsItBeforeItIsShown() throws {
        let stage = try stage()
        let group = try subscribed(stage)
        _ = try say(stage, true)
        let row = #"{"schema":"public","table":"messages","record":{"id":1,"sender_id":"ada","body":"hi"}}"#
        let said = try stage.watch { $0.deliverEvent(change(group, row)) }
        #expect(said.count == 4)
        #expect(said[0] == frame(false) || said[1] == frame(false))
        #expect(said[3].contains("postgres_changes"))
    }

    @Test(arguments: [
        (#"{"schema":"public","table":"messages","record":{"sender_id":"bob"}}"#, RowChange.Operation.insert),
        (#"{"schema":"public","table":"receipts","record":{"user_id":"ada"}}"#, .insert),
        (#"{"schema":"other","table":"messages","record":{"user_id":"ada"}}"#, .insert),
        (#"{"schema":"public","table":"messages","record":{"sender_id":"ada"}}"#, .update),
        (#"{"schema":"public","table":"messages","record":{"reviewer_id":"ada","sender_id":null}}"#, .insert),
    ]) func otherRowsDoNot(_ row: String, _ operation: RowChange.Operation) throws {
        let stage = try stage()
        let group = try subscribed(stage)
        _ = try say(stage, true)
        #expect(try stage.watch { $0.deliverEvent(change(group, row, operation)) }.count == 1)
    }

    @Test func soDoesAMessageThatTheDatabaseBroadcasts() throws {
        let stage = try stage()
        _ = try say(stage, true)
        let payload = Array(
            #"{"record":{"user_id":"ada"},"old_record":null,"operation":"INSERT","table":"messages","schema":"public"}"#
                .utf8)
        let message = UserBroadcast(event: "INSERT", encoding: .json, payload: payload[...], metadata: nil)
        let key = ChannelKey(topic: "realtime:a", isPrivate: false)
        let said = try stage.watch {
            $0.deliverEvent(.broadcast(DatabaseBroadcast(key: key, id: "1", broadcast: .user(message))))
        }
        #expect(told(said).first == frame(false))
        #expect(told(said).count == 3)
    }

    // MARK: Other loops

    @Test func otherLoopsTellTheirOwnMembersAndEndItThemselves() throws {
        let (here, there) = (try stage(), try stage(loop: 1))
        _ = try say(here, true)
        var said = try there.watch { hub in for relay in here.relays { hub.applyRelay(relay) } }
        #expect(said.count == 2, "one for each version: \(said)")
        #expect(try wake(there, after: 3000).count == 2)
        #expect(try wake(here, after: 3000).count == 1)
        _ = try say(here, true)
        _ = try there.watch { hub in for relay in here.relays { hub.applyRelay(relay) } }
        try here.disconnect(1)
        said = try there.watch { hub in for relay in here.relays { hub.applyRelay(relay) } }
        #expect(said.count == 2)
        #expect(said.allSatisfy { $0.contains(#""typing":false"#) })
    }

    // MARK: Crowds

    @Test func aChannelIsToldOfSoManyAtOnceAndOfTheNextWhenOneEnds() throws {
        var rules = TypingRules()
        rules.shown = 3
        let stage = Stage(presence: .plain, typing: rules)
        for slot in Slot(1)...6 {
            stage.connect(slot, subject: "u\(slot)")
            try stage.join("realtime:a", slot)
        }
        stage.now = stage.now.advanced(by: 10_000)
        var starts = 0
        for slot in Slot(1)...5 { starts += told(try say(stage, true, from: slot, name: "u\(slot)")).count }
        #expect(starts == 3)
        stage.now = stage.now.advanced(by: 1000)
        let next = told(try say(stage, false, from: 2, name: "u2"))
        #expect(next.count == 2)
        #expect(next.last?.contains("u4") == true)
        stage.connect(9)
        let state = try #require(try stage.join("realtime:a", 9).last)
        #expect(state.occurrences(of: "\"name\"") == 3)
        #expect(state.contains(#""count":4"#))
    }

    @Test func fiveHundredTypistsAreABoundedNumberOfFrames() throws {
        let stage = Stage(presence: .plain)
        stage.connect(900)
        try stage.join("realtime:a", 900)
        for slot in Slot(1)...500 {
            stage.connect(slot, subject: "u\(slot)")
            try stage.join("realtime:a", slot)
        }
        stage.now = stage.now.advanced(by: 10_000)
        var frames = 0
        for second in 0..<10 {
            for slot in Slot(1)...500 {
                stage.now = HubTime(
                    monotonic: 10_000 + Int64(second) * 1000 + Int64(slot) * 2,
                    unix: stage.now.unix)
                // Half of them stop and start again all the time.
                frames += told(try say(stage, slot % 2 == 0 || second % 2 == 0, from: slot)).count
                frames += told(try stage.watch { $0.wake(at: stage.now) }).count
            }
        }
        #expect(frames <= 10 * 40 + 40, "\(frames) in ten seconds")
        #expect(frames > 100)
    }
}
