import Hub
import Matching
import TestSupport
import Testing
import Wire

/// Which receipts are written back: what a pong proves, without anybody asking.
@Suite struct ReceiptTrackerTests {
    private static let messages = #"{"event":"INSERT","schema":"public","table":"messages"}"#

    private let stage: Stage
    private let log: ReceiptLog

    init() {
        let tables = ReceiptTables(["public.messages"])
        tables.learnKey(["id"], schema: "public", table: "messages")
        log = ReceiptLog(tables: tables, capacity: 4)
        var shared = HubShared(recovery: SessionRegistry(window: 0))
        shared.receiptLog = log
        stage = Stage(
            hub: Hub(
                loop: 0, limits: HubLimits(), verifier: TestVerifier(), random: SeededGenerator(seed: 1),
                presence: PresenceRules(), typing: TypingRules(), shared: shared))
    }

    /// The receipts that wait, which are taken.
    private func written() -> [String] {
        defer { log.finishBatch() }
        return log.takeReceipts(upTo: 1000).map {
            "\($0.user) \($0.row.table) \(String(decoding: $0.row.key, as: UTF8.self)) \($0.isShown ? "shown" : "delivered")"
        }
    }

    private func send(
        _ id: Int, to group: ChangeGroupID, _ recipients: ChangeDelivery.Recipients = .everybody
    ) throws {
        let row = ReceiptRow(table: "public.messages", key: Array(#"{"id":\#(id)}"#.utf8))
        _ = try stage.watch {
            $0.deliverEvent(
                .change(
                    ChangeDelivery(
                        group: group, operation: .insert, ids: [1], data: Array("{}".utf8), recipients: recipients,
                        receipt: row)))
        }
    }

    private func open(
        _ slot: Slot, _ subject: String, state: String? = nil, topic: String = "realtime:a"
    ) throws -> ChangeGroupID? {
        stage.connect(slot, subject: subject)
        let config = state.map { #","app_state":"\#($0)""# } ?? ""
        try stage.join(topic, slot, #"{"postgres_changes":[\#(Self.messages)]\#(config)}"#)
        let group = stage.subscribed.last
        if let group { _ = try stage.watch { $0.changeSubscription(group, is: .live) } }
        return group
    }

    private func ping(_ slot: Slot) throws -> String {
        try #require(stage.hub.acknowledgementPing(for: slot)).pingPayload
    }

    private func pong(_ payload: String, _ slot: Slot) throws {
        _ = try stage.watch { $0.receivePong(payload.utf8, from: slot) }
    }

    private func prove(_ slot: Slot) throws { try pong(try ping(slot), slot) }

    @Test("A pong proves what was sent before its ping, once")
    func pongProves() throws {
        let group = try #require(try open(1, "ada", state: "active"))
        let early = try ping(1)
        try send(7, to: group)
        try pong(early, 1)
        #expect(written().isEmpty)
        #expect(stage.hub.owesReceipts(1))
        let late = try ping(1)
        #expect(!stage.hub.owesReceipts(1), "one ping at a time")
        try send(8, to: group)
        try pong(late, 1)
        #expect(written() == [#"ada public.messages {"id":7} shown"#])
        try prove(1)
        #expect(written() == [#"ada public.messages {"id":8} shown"#])
        try prove(1)
        #expect(written().isEmpty)
        #expect(!stage.hub.owesReceipts(1))
    }

    @Test("An app that is not on the screen has received it, and shows nothing", arguments: ["inactive", "background"])
    func hidden(state: String) throws {
        let group = try #require(try open(1, "ada", state: state))
        try send(7, to: group)
        try prove(1)
        #expect(written() == [#"ada public.messages {"id":7} delivered"#])
    }

    @Test("Only whom a policy shows a row, and who was there when it came, has a receipt")
    func recipients() throws {
        let group = try #require(try open(1, "ada"))
        try send(6, to: group, .bearers([Stage.claims(subject: "bob", session: "his")]))
        try send(7, to: group)
        _ = try open(2, "bob")
        try prove(2)
        #expect(written().isEmpty)
        try prove(1)
        #expect(written() == [#"ada public.messages {"id":7} shown"#])
    }

    @Test("A message of realtime.broadcast_changes tells its row to those who hear the channel")
    func broadcast() throws {
        stage.connect(1, subject: "ada")
        try stage.join("realtime:a", 1, "{}")
        let insert = #"{"operation":"INSERT","schema":"public","table":"messages","record":{"id":9,"body":"x"}}"#
        let message = UserBroadcast(event: "INSERT", encoding: .json, payload: Array(insert.utf8)[...], metadata: [])
        let key = ChannelKey(topic: "realtime:a", isPrivate: false)
        _ = try stage.watch {
            $0.deliverEvent(.broadcast(DatabaseBroadcast(key: key, id: "9", broadcast: .user(message))))
        }
        #expect(stage.hub.owesReceipts(1))
        try prove(1)
        #expect(written() == [#"ada public.messages {"id":9} shown"#])
        #expect(!stage.hub.owesReceipts(1))
    }

    @Test("A receipt that is not written keeps the feed's place behind its row, for a minute")
    func holds() throws {
        let group = try #require(try open(1, "ada"))
        let now = stage.now.unix
        #expect(log.oldestMark(at: now) == nil)
        _ = try stage.watch { $0.deliverEvent(.boundary(5)) }
        try prove(1)
        try send(7, to: group)
        _ = try stage.watch { $0.deliverEvent(.boundary(9)) }
        try prove(1)
        #expect(log.oldestMark(at: now) == 5)
        _ = log.takeReceipts(upTo: 10)
        #expect(log.oldestMark(at: now) == 5, "it is not written yet")
        #expect(log.oldestMark(at: now + 61_000) == nil)
        log.finishBatch()
        #expect(log.oldestMark(at: now) == nil)
    }

    @Test("While too many wait, proofs are taken with a later pong")
    func bounded() throws {
        let group = try #require(try open(1, "ada"))
        for id in 1...4 { try send(id, to: group) }
        try prove(1)
        try send(5, to: group)
        try prove(1)
        #expect(log.counts.waiting == 4)
        #expect(stage.hub.owesReceipts(1))
        #expect(written().count == 4)
        try prove(1)
        #expect(written() == [#"ada public.messages {"id":5} shown"#])
    }

    @Test("Receipts that are given back come first, and those that rest come last")
    func order() throws {
        let group = try #require(try open(1, "ada"))
        for id in 1...4 { try send(id, to: group) }
        try prove(1)
        let taken = log.takeReceipts(upTo: 3)
        log.finishBatch(inFront: [taken[1]], behind: [taken[0]])
        #expect(
            written() == [2, 4, 1].map { #"ada public.messages {"id":\#($0)} shown"# })
    }
}
