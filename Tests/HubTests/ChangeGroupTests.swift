import Hub
import Matching
import TestSupport
import Testing
import Wire

/// Joins that want row changes: what the feed is asked, when they are answered, what is delivered (wire-protocol A4, A5).
@Suite struct ChangeGroupTests {
    private static let todos = #"{"event":"INSERT","schema":"public","table":"todos","filter":"id=gt.0"}"#
    private static let users = #"{ "table":"users" , "event":"*","id":99 }"#

    private static func config(_ entries: String..., more: String = "") -> String {
        "{\"postgres_changes\":[\(entries.joined(separator: ","))]\(more)}"
    }

    private func id(_ entry: String) throws -> Int {
        ChangeBinding(try JSON(parsing: Array(entry.utf8))).parametersHash
    }

    private func echoed(_ entry: String) throws -> String {
        let binding = ChangeBinding(try JSON(parsing: Array(entry.utf8)))
        return String(decoding: binding.echoJSON(id: binding.parametersHash), as: UTF8.self)
    }

    private func system(_ slot: Int, ok: Bool, _ message: String) -> String {
        #"\#(slot) ← ["1",null,"realtime:a","system",{"extension":"postgres_changes","status":"\#(ok ? "ok" : "error")","message":"\#(message)","channel":"a"}]"#
    }

    private func joinReply(_ slot: Int, _ entries: String...) throws -> String {
        let list = try entries.map { try echoed($0) }.joined(separator: ",")
        return
            #"\#(slot) ← ["1","1","realtime:a","phx_reply",{"status":"ok","response":{"postgres_changes":[\#(list)]}}]"#
    }

    private func delivery(_ group: ChangeGroupID, ids: [Int]) -> FeedEvent {
        .change(ChangeDelivery(group: group, operation: .update, ids: ids, data: Array(#"{"type":"UPDATE"}"#.utf8)))
    }

    // MARK: Waiting for the feed

    @Test func theReplyWaitsForTheFeed() throws {
        let stage = Stage()
        stage.connect(1)
        let asked = try stage.join("realtime:a", 1, Self.config(Self.todos))
        let group = try #require(stage.subscribed.first)
        #expect(asked == ["subscribe \(group.loop).\(group.serial) anon [\(try id(Self.todos))]"])
        #expect(
            try stage.watch { $0.changeSubscription(group, is: .live) }
                == [joinReply(1, Self.todos), system(1, ok: true, "Subscribed to PostgreSQL")])
        #expect(try stage.watch { $0.changeSubscription(group, is: .live) }.isEmpty, "said once")
    }

    /// Clients compare entry by entry: same order, same count, same text, a non-zero integer `id` added.
    @Test func entriesAreEchoedInOrderWithIds() throws {
        let stage = Stage()
        stage.connect(1)
        let odd =
            #"{"schema":"public","table":"todos","filter":"id=\u0067t.0","extra":[1, {"a":null}],"event":"insert"}"#
        try stage.join("realtime:a", 1, Self.config(Self.users, Self.todos, "null", odd, Self.users))
        let group = try #require(stage.subscribed.first)
        let reply = try #require(try stage.watch { $0.changeSubscription(group, is: .live) }.first)
        #expect(
            try reply == joinReply(1, Self.users, Self.todos, odd, Self.users), "equal parameters have equal ids")
        guard case .send(let frame, _, _) = stage.actions.first else {
            Issue.record("no reply")
            return
        }
        let entries =
            try JSON(parsing: ShownFrame(frame.bytes).payload).elements[4]["response"]?["postgres_changes"]?.elements
            ?? []
        let ids = entries.compactMap { $0["id"]?.int }
        #expect(ids.count == 4)
        #expect(ids.allSatisfy { (1...Int(Int32.max)).contains($0) })
        #expect(ids[0] == ids[3] && ids[0] != ids[1])
        #expect(entries[2]["filter"]?.bytes.elementsEqual(#""id=\u0067t.0""#.utf8) == true)
    }

    @Test func versionOneIsToldTheSame() throws {
        let stage = Stage()
        stage.connect(1, .v1)
        try stage.joinV1("realtime:a", 1, Self.config(Self.todos))
        let group = try #require(stage.subscribed.first)
        #expect(
            try stage.watch { $0.changeSubscription(group, is: .live) } == [
                #"1 ← {"topic":"realtime:a","event":"phx_reply","payload":{"status":"ok","response":{"postgres_changes":[\#(echoed(Self.todos))]}},"ref":"1"}"#,
                #"1 ← {"topic":"realtime:a","event":"system","payload":{"extension":"postgres_changes","status":"ok","message":"Subscribed to PostgreSQL","channel":"a"},"ref":null}"#,
            ])
    }

    @Test func theReplyComesFirstThenSystemThenPresence() throws {
        let stage = Stage()
        stage.connect(1)
        let more = #","broadcast":{"replication_ready":true},"presence":{"enabled":true,"key":"k"}"#
        _ = try stage.watch { $0.feedChanged(isReady: true) }
        try stage.join("realtime:a", 1, Self.config(Self.todos, more: more))
        let group = try #require(stage.subscribed.first)
        let events = try stage.watch { $0.changeSubscription(group, is: .live) }.map { said in
            ["phx_reply", "postgres_changes\",\"status", "Replication connection", "presence_state"].first {
                said.contains($0)
            }
        }
        #expect(events == ["phx_reply", "postgres_changes\",\"status", "Replication connection", "presence_state"])
    }

    @Test func whatIsBadOfASubscriptionIsSaidBehindTheRest() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1, Self.config(Self.todos))
        let group = try #require(stage.subscribed.first)
        let bad = SubscriptionComplaint("no such table", isError: true)
        let note = SubscriptionComplaint("a new partition", isError: false)
        #expect(
            try stage.watch { $0.changeSubscription(group, is: .partly([bad])) } == [
                joinReply(1, Self.todos), system(1, ok: true, "Subscribed to PostgreSQL"),
                system(1, ok: false, "no such table"),
            ])
        #expect(try stage.watch { $0.changeSubscription(group, is: .partly([bad])) }.isEmpty)
        #expect(
            try stage.watch { $0.changeSubscription(group, is: .partly([note])) }
                == [system(1, ok: true, "a new partition")])
        #expect(
            try stage.watch { $0.changeSubscription(group, is: .live) }
                == [system(1, ok: true, "Subscribed to PostgreSQL")])
    }

    @Test func aFailedSubscriptionJoinsAndSaysWhy() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1, Self.config(Self.todos))
        let group = try #require(stage.subscribed.first)
        #expect(
            try stage.watch { $0.changeSubscription(group, is: .failed("run roost watch todos")) }
                == [joinReply(1, Self.todos), system(1, ok: false, "run roost watch todos")])
        // Whoever comes later is told at once.
        stage.connect(2)
        #expect(
            try stage.join("realtime:a", 2, Self.config(Self.todos))
                == [joinReply(2, Self.todos), system(2, ok: false, "run roost watch todos")])
        // The feed tries again by itself and says how it went.
        #expect(try stage.watch { $0.changeSubscription(group, is: .failed("run roost watch todos")) }.isEmpty)
        #expect(
            try stage.watch { $0.changeSubscription(group, is: .failed("dropped")) }
                == [system(1, ok: false, "dropped"), system(2, ok: false, "dropped")])
        #expect(
            try stage.watch { $0.changeSubscription(group, is: .live) }
                == [system(1, ok: true, "Subscribed to PostgreSQL"), system(2, ok: true, "Subscribed to PostgreSQL")])
        #expect(
            try stage.watch { $0.changeSubscription(group, is: .failed("dropped")) }
                == [system(1, ok: false, "dropped"), system(2, ok: false, "dropped")])
    }

    @Test func withoutADatabaseJoinsAreRefused() throws {
        let stage = Stage()
        for slot in Slot(1)...3 { stage.connect(slot) }
        for slot in Slot(1)...2 { try stage.join("realtime:a", slot, Self.config(Self.todos)) }
        try stage.join("realtime:a", 3)
        let refusal =
            #"["1","1","realtime:a","phx_reply",{"status":"error","response":{"reason":"UnableToConnectToProject: Realtime was unable to connect to the project database"}}]"#
        let group = ChangeGroupID(loop: 0, serial: 1)
        #expect(
            try stage.watch { $0.changeSubscription(group, is: .unavailable) }
                == ["1 ← \(refusal)", "2 ← \(refusal)", "unsubscribe 0.1"])
        #expect(try stage.say(#"["1","3","realtime:a","broadcast",{}]"#, from: 1).first?.contains("unmatched") == true)
        #expect(try stage.say(#"["1","3","realtime:a","broadcast",{}]"#, from: 3).first == "relay broadcast realtime:a")
        try stage.say(#"["1","3","realtime:a","phx_leave",{}]"#, from: 3)
        #expect(stage.hub.channelCount == 0)
        // It can be asked for again.
        #expect(try stage.join("realtime:a", 1, Self.config(Self.todos)).first?.hasPrefix("subscribe") == true)
    }

    @Test func anAnsweredGroupOutlivesAnOutage() throws {
        let stage = Stage()
        stage.connect(1)
        try stage.join("realtime:a", 1, Self.config(Self.todos))
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        #expect(try stage.watch { $0.changeSubscription(group, is: .unavailable) }.isEmpty)
        #expect(try stage.watch { $0.deliverEvent(self.delivery(group, ids: [1])) }.count == 1)
    }

    @Test func aWaitingJoinHearsNothingYet() throws {
        let stage = Stage()
        stage.connect(1)
        stage.connect(2)
        try stage.join("realtime:a", 1, Self.config(Self.todos))
        let group = try #require(stage.subscribed.first)
        try stage.join("realtime:a", 2)
        #expect(try stage.say(#"["1","3","realtime:a","broadcast",{}]"#, from: 2) == ["relay broadcast realtime:a"])
        #expect(try stage.watch { $0.deliverEvent(self.delivery(group, ids: [1])) }.isEmpty)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        #expect(try stage.say(#"["1","3","realtime:a","broadcast",{}]"#, from: 2).first?.hasPrefix("1 ⇐") == true)
    }

    @Test func aJoinBombIsRefusedAtOnce() throws {
        let stage = Stage()
        stage.connect(1)
        func list(_ count: Int) -> String { Array(repeating: "{}", count: count).joined(separator: ",") }
        let refusal =
            #"1 ← ["1","1","realtime:a","phx_reply",{"status":"error","response":{"reason":"RealtimeDisabledForConfiguration: Too many postgres_changes: one join may have 1000 (limits.filters_per_channel); spread them over several channels"}}]"#
        #expect(try stage.join("realtime:a", 1, Self.config(list(1_001))) == [refusal])
        let bomb = Self.config(list(1_000_000))
        var said: [String] = []
        // Beside what reading its text alone takes, because the machine may be busy.
        let reading = try ContinuousClock().measure { _ = try JSON(parsing: Array(bomb.utf8)) }
        let elapsed = try ContinuousClock().measure { said = try stage.join("realtime:a", 1, bomb) }
        #expect(said == [refusal])
        #expect(elapsed < reading * 100, "10 times; without the limit 600")
        #expect(stage.hub.channelCount == 0)
        #expect(try stage.join("realtime:a", 1, Self.config(list(1_000))).first?.hasPrefix("subscribe") == true)
    }

    // MARK: One registration for all who want the same

    @Test func oneSubscribePerDistinctWish() throws {
        let stage = Stage()
        for slot in Slot(1)...8 { stage.connect(slot, slot == 3 ? .v1 : .v2, role: slot == 4 ? "admin" : "anon") }
        #expect(try stage.join("realtime:a", 1, Self.config(Self.todos)).count == 1)
        let group = try #require(stage.subscribed.first)
        #expect(try stage.join("realtime:a", 2, Self.config(Self.todos)).isEmpty, "same: waits with the first")
        #expect(
            try stage.joinV1("realtime:a", 3, Self.config(#"{"table":"todos","filter":"id=gt.0","event":"insert"}"#))
                .isEmpty, "in other words")
        #expect(try stage.join("realtime:a", 4, Self.config(Self.todos)).count == 1, "another role")
        #expect(try stage.join("realtime:a", 5, Self.config(Self.users)).count == 1, "other bindings")
        #expect(try stage.join("realtime:b", 6, Self.config(Self.todos)).count == 1, "another channel")
        #expect(try stage.join("realtime:a", 7, Self.config(Self.todos, Self.users)).count == 1, "more bindings")
        #expect(try stage.join("realtime:a", 8, Self.config(Self.users, Self.todos)).count == 1, "another order")
        let replies = try stage.watch { $0.changeSubscription(group, is: .live) }
        #expect(replies.count == 6)
        #expect(
            replies.filter { $0.hasPrefix("3 ← ") && $0.contains(#""filter":"id=gt.0","event":"insert","id":"#) }.count
                == 1)
        // Live already: later ones are answered at once.
        stage.connect(9)
        #expect(
            try stage.join("realtime:a", 9, Self.config(Self.todos))
                == [joinReply(9, Self.todos), system(9, ok: true, "Subscribed to PostgreSQL")])
    }

    @Test func theLastToLeaveUnsubscribes() throws {
        let stage = Stage()
        for slot in Slot(1)...3 {
            stage.connect(slot)
            try stage.join("realtime:a", slot, Self.config(Self.todos))
        }
        let group = ChangeGroupID(loop: 0, serial: 1)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        #expect(
            try stage.say(#"["1","3","realtime:a","phx_leave",{}]"#, from: 2).allSatisfy {
                !$0.hasPrefix("unsubscribe")
            })
        #expect(try stage.watch { $0.deliverEvent(self.delivery(group, ids: [5])) }.first?.hasPrefix("1,3 ⇐") == true)
        #expect(try stage.disconnect(1).isEmpty)
        #expect(try stage.disconnect(3) == ["unsubscribe 0.1"])
        #expect(stage.hub.channelCount == 0)
        #expect(try stage.watch { $0.deliverEvent(self.delivery(group, ids: [5])) }.isEmpty)
        #expect(try stage.watch { $0.changeSubscription(group, is: .failed("late")) }.isEmpty)
    }

    @Test func leavingWhileRegisteringUnsubscribes() throws {
        let stage = Stage()
        stage.connect(1)
        stage.connect(2)
        try stage.join("realtime:a", 1, Self.config(Self.todos))
        try stage.join("realtime:a", 2, Self.config(Self.todos))
        #expect(try stage.disconnect(1).isEmpty)
        let left = try stage.say(#"["1","3","realtime:a","phx_leave",{}]"#, from: 2)
        #expect(left.first == "unsubscribe 0.1")
        #expect(left.count == 3)
        #expect(stage.hub.channelCount == 0)
        #expect(try stage.watch { $0.changeSubscription(ChangeGroupID(loop: 0, serial: 1), is: .live) }.isEmpty)
    }

    @Test func aSecondJoinWhileRegisteringIsAnsweredOnce() throws {
        let stage = Stage()
        stage.connect(1)
        stage.connect(2)
        try stage.join("realtime:a", 1, Self.config(Self.todos))
        let first = try #require(stage.subscribed.first)
        try stage.join("realtime:a", 2, Self.config(Self.todos))
        #expect(
            try stage.say(#"["9","9","realtime:a","phx_join",{"config":\#(Self.config(Self.todos))}]"#, from: 1).isEmpty
        )
        let said = try stage.watch { $0.changeSubscription(first, is: .live) }
        #expect(said.filter { $0.hasPrefix("1 ←") && $0.contains("phx_reply") }.count == 1)
        #expect(said.contains { $0.hasPrefix(#"1 ← ["9","9","#) })
        #expect(try stage.watch { $0.deliverEvent(self.delivery(first, ids: [5])) }.first?.hasPrefix("1,2 ⇐") == true)
    }

    // MARK: Delivery

    @Test func changesAreSplicedForBothVersions() throws {
        let stage = Stage()
        stage.connect(1)
        stage.connect(2, .v1)
        stage.connect(3)
        try stage.join("realtime:a", 1, Self.config(Self.todos, Self.users))
        let group = try #require(stage.subscribed.first)
        try stage.joinV1("realtime:a", 2, Self.config(Self.todos, Self.users))
        try stage.join("realtime:a", 3)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        let payload = #"{"ids":[7,2147483647],"data":{"type":"UPDATE"}}"#
        #expect(
            try stage.watch { $0.deliverEvent(self.delivery(group, ids: [7, 2_147_483_647])) } == [
                #"2 ⇐ {"topic":"realtime:a","event":"postgres_changes","payload":\#(payload),"ref":null}"#,
                #"1 ⇐ [null,null,"realtime:a","postgres_changes",\#(payload)]"#,
            ])
    }

    /// Members come and go in any order; a change reaches those who are there.
    @Test func deliveryFollowsWhoIsThere() throws {
        let stage = Stage()
        var random = SeededGenerator(seed: 5)
        var there: Set<Slot> = [0]
        for slot in Slot(0)..<10 { stage.connect(slot, slot % 3 == 2 ? .v1 : .v2) }
        try stage.join("realtime:a", 0, Self.config(Self.todos))
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        for _ in 0..<500 {
            // Slot 0 stays, so that the group does.
            let slot = Slot(1 + random.next() % 9)
            if there.remove(slot) != nil {
                try stage.disconnect(slot)
                stage.connect(slot, slot % 3 == 2 ? .v1 : .v2)
            } else {
                there.insert(slot)
                let config = Self.config(Self.todos)
                _ =
                    try slot % 3 == 2
                    ? stage.joinV1("realtime:a", slot, config) : stage.join("realtime:a", slot, config)
            }
            _ = try stage.watch { $0.deliverEvent(self.delivery(group, ids: [1])) }
            let reached = stage.actions.flatMap { action -> [Slot] in
                if case .fanOut(_, let audience, _, _) = action { audience } else { [] }
            }
            #expect(reached.sorted() == there.sorted())
        }
    }

    // MARK: Legacy joins

    /// Without a config, the topic names the table and events carry the change itself (wire-protocol A5).
    @Test(arguments: [
        ("public", #"{"event":"*","schema":"public"}"#),
        ("public:todos", #"{"event":"*","schema":"public","table":"todos"}"#),
        ("public:todos:id=eq.1:2", #"{"event":"*","schema":"public","table":"todos","filter":"id=eq.1:2"}"#),
    ])
    func legacyTopicsNameTables(_ name: String, _ binding: String) throws {
        let stage = Stage()
        stage.connect(1)
        #expect(
            try stage.say(#"["1","1","realtime:\#(name)","phx_join",{}]"#, from: 1)
                == ["subscribe 0.1 anon legacy [\(try id(binding))]"])
        #expect(
            try stage.watch { $0.changeSubscription(ChangeGroupID(loop: 0, serial: 1), is: .live) }.first
                == #"1 ← ["1","1","realtime:\#(name)","phx_reply",{"status":"ok","response":{"postgres_changes":[\#(try echoed(binding))]}}]"#
        )
        for (operation, event) in [(RowChange.Operation.insert, "INSERT"), (.update, "UPDATE"), (.delete, "DELETE")] {
            let change = ChangeDelivery(
                group: ChangeGroupID(loop: 0, serial: 1), operation: operation, ids: [1], data: Array(#"{"a":1}"#.utf8))
            #expect(
                try stage.watch { $0.deliverEvent(.change(change)) } == [
                    #"1 ⇐ [null,null,"realtime:\#(name)","\#(event)",{"a":1}]"#
                ])
        }
    }
}
