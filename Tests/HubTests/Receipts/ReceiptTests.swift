import Hub
import Matching
import Synchronization
import TestSupport
import Testing
import Wire

/// What a hub says of who has certainly received a message row.
@Suite struct ReceiptTests {
    private static let messages = #"{"event":"INSERT","schema":"public","table":"messages"}"#
    private static let row = MessageIdentity(schema: "public", table: "messages", key: [("id", "7")])

    private let stage: Stage
    private let registry = ReceiptRegistry()
    private let users = UserPresence(notesTransitions: false)

    init() {
        let shared = HubShared(
            recovery: SessionRegistry(window: 0), users: users, devices: UserPresence(notesTransitions: false),
            receipts: registry)
        stage = Stage(
            hub: Hub(
                loop: 0, limits: HubLimits(), verifier: TestVerifier(), random: SeededGenerator(seed: 1),
                presence: PresenceRules(),
                typing: TypingRules(), shared: shared))
    }

    /// The answers since the last call.
    private func told(_ body: () throws -> Void) rethrows -> [ReceiptAnswer.Verdict] {
        let verdicts = Shared<[ReceiptAnswer.Verdict]>([])
        registry.sendAnswers { answers in verdicts.value.withLock { $0 += answers.map(\.verdict) } }
        try body()
        return verdicts.value.withLock { $0 }
    }

    private final class Shared<Value: Sendable>: Sendable {
        let value: Mutex<Value>
        init(_ value: Value) { self.value = Mutex(value) }
    }

    private func send(
        _ change: Int64 = 7, to group: ChangeGroupID, _ recipients: ChangeDelivery.Recipients = .everybody
    ) throws {
        _ = try stage.watch {
            $0.deliverEvent(
                .change(
                    ChangeDelivery(
                        group: group, operation: .insert, ids: [1], data: Array("{}".utf8), recipients: recipients,
                        message: change)))
        }
    }

    private func ask(_ slots: [Slot], change: Int64 = 7, shown: Bool = true) throws -> [String] {
        try stage.watch {
            $0.deliverEvent(
                .receipts([
                    ReceiptQuestion(
                        change: change, user: "ada", slots: slots, row: Self.row, demandsShown: shown,
                        until: stage.now.monotonic + 5000)
                ]))
        }
    }

    /// Opens a socket that hears messages, and returns its group.
    private func openFirst(state: String? = "active") throws -> ChangeGroupID {
        stage.connect(1, subject: "ada")
        let config = state.map { #","app_state":"\#($0)""# } ?? ""
        try stage.join("realtime:a", 1, #"{"postgres_changes":[\#(Self.messages)]\#(config)}"#)
        let group = try #require(stage.subscribed.first)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        return group
    }

    private func ping(_ slot: Slot) throws -> String {
        let frame = try #require(stage.hub.acknowledgementPing(for: slot))
        return frame.pingPayload
    }

    @Test("A pong to a ping behind the row proves it; one to a ping before it does not")
    func pongProves() throws {
        let group = try openFirst()
        let early = try ping(1)
        try send(to: group)
        let first = try told {
            let actions = try ask([1])
            #expect(actions.isEmpty, "its answer to the ping before is waited for")
        }
        #expect(first.isEmpty)
        let second = try told {
            let actions = try stage.watch { $0.receivePong(early.utf8, from: 1) }
            #expect(actions == ["ask 0.1"])
        }
        #expect(second.isEmpty)
        let behind = try ping(1)
        #expect(try told { _ = try stage.watch { $0.receivePong(behind.utf8, from: 1) } } == [.shown])
        #expect(try told { _ = try ask([1]) } == [.shown], "it is known from then on")
    }

    @Test("A socket that was not sent the row says so at once")
    func unheard() throws {
        let group = try openFirst()
        #expect(try told { _ = try ask([1]) } == [.unheard])
        try send(to: group, .bearers([Stage.claims(subject: "bob", session: "his")]))
        #expect(try told { _ = try ask([1]) } == [.unheard])
        #expect(try told { _ = try ask([1, 9]) } == [.unheard], "a socket that is gone proves nothing")
    }

    @Test("A socket that joined behind the row was not sent it")
    func joinedLater() throws {
        let group = try openFirst()
        try send(to: group)
        stage.connect(2, subject: "ada")
        try stage.join("realtime:a", 2, #"{"postgres_changes":[\#(Self.messages)]}"#)
        #expect(try told { _ = try ask([2]) } == [.unheard])
    }

    @Test("An app that is not on the screen is not asked where it has to be", arguments: ["inactive", "background"])
    func hidden(state: String) throws {
        let group = try openFirst(state: state)
        try send(to: group)
        #expect(try told { _ = try ask([1]) } == [.hidden])
        let asked = try told {
            let actions = try ask([1], shown: false)
            #expect(actions == ["ask 0.1"])
        }
        #expect(asked.isEmpty)
        let behind = try ping(1)
        #expect(try told { _ = try stage.watch { $0.receivePong(behind.utf8, from: 1) } } == [.received])
    }

    @Test("An app that says nothing of itself counts as shown")
    func silentApp() throws {
        let group = try openFirst(state: nil)
        try send(to: group)
        let behind = try ping(1)
        _ = try stage.watch { $0.receivePong(behind.utf8, from: 1) }
        #expect(try told { _ = try ask([1]) } == [.shown])
    }

    @Test("A socket that goes from the screen, or ends, before it has proven the row is waited for no more")
    func goesWhileAsked() throws {
        let group = try openFirst()
        try send(to: group)
        #expect(try told { _ = try ask([1]) }.isEmpty)
        #expect(
            try told {
                _ = try stage.say(#"["1","5","realtime:a","app_state",{"state":"background"}]"#, from: 1)
            } == [.hidden])
        _ = try stage.say(#"["1","6","realtime:a","app_state",{"state":"active"}]"#, from: 1)
        #expect(try told { _ = try ask([1]) }.isEmpty)
        #expect(try told { try stage.disconnect(1) } == [.lost])
    }

    @Test("Of two sockets the one that proves it decides, and the other's end says nothing")
    func twoSockets() throws {
        let group = try openFirst()
        stage.connect(2, subject: "ada")
        try stage.join("realtime:a", 2, #"{"postgres_changes":[\#(Self.messages)]}"#)
        try send(to: group)
        #expect(try told { _ = try ask([1, 2]) }.isEmpty)
        #expect(try told { try stage.disconnect(1) }.isEmpty)
        let behind = try ping(2)
        #expect(try told { _ = try stage.watch { $0.receivePong(behind.utf8, from: 2) } } == [.shown])
    }

    @Test("A question whose time is over is forgotten")
    func forgotten() throws {
        let group = try openFirst()
        try send(to: group)
        #expect(try told { _ = try ask([1]) }.isEmpty)
        #expect(try told { try stage.tick(after: 6000) }.isEmpty)
        #expect(try told { try stage.disconnect(1) }.isEmpty)
    }

    @Test("A message of realtime.broadcast_changes about the row counts as the row")
    func broadcast() throws {
        stage.connect(1, subject: "ada")
        try stage.join("realtime:a", 1)
        func change(_ id: String, _ body: String = "x") -> FeedEvent {
            let payload =
                #"{"operation":"INSERT","schema":"public","table":"messages","record":{"id":\#(id),"body":"\#(body)"}}"#
            return .broadcast(
                DatabaseBroadcast(
                    key: ChannelKey(topic: "realtime:a", isPrivate: false), id: id,
                    broadcast: .user(
                        UserBroadcast(event: "INSERT", encoding: .json, payload: Array(payload.utf8)[...], metadata: [])
                    )))
        }
        _ = try stage.watch { $0.deliverEvent(change("8")) }
        #expect(try told { _ = try ask([1]) } == [.unheard], "another row")
        _ = try stage.watch { $0.deliverEvent(change("7")) }
        let asked = try told {
            let actions = try ask([1])
            #expect(actions == ["ask 0.1"])
        }
        #expect(asked.isEmpty)
        let behind = try ping(1)
        #expect(try told { _ = try stage.watch { $0.receivePong(behind.utf8, from: 1) } } == [.shown])
        // Big ones take the room of the oldest.
        let big = String(repeating: "x", count: 3 << 20)
        for id in 8..<11 { _ = try stage.watch { $0.deliverEvent(change(String(id), big)) } }
        #expect(try told { _ = try ask([1]) } == [.unheard])
    }

    @Test("The oldest rows are forgotten, and count as not sent")
    func rowsAreBounded() throws {
        let group = try openFirst()
        for change in 0..<9000 { try send(Int64(change), to: group) }
        let behind = try ping(1)
        _ = try stage.watch { $0.receivePong(behind.utf8, from: 1) }
        #expect(try told { _ = try ask([1], change: 10) } == [.unheard])
        #expect(try told { _ = try ask([1], change: 8999) } == [.shown])
        #expect(try told { _ = try ask([1], change: 8999 - 8191) } == [.shown])
    }
}

/// Whether users are there, by what their sockets prove.
@Suite struct SocketLivenessTests {
    private let users = UserPresence(notesTransitions: false)
    private let devices = UserPresence(notesTransitions: false)
    private let stage: Stage

    init() throws {
        let shared = HubShared(recovery: SessionRegistry(window: 0), users: users, devices: devices)
        stage = Stage(
            hub: Hub(
                loop: 0, limits: HubLimits(), verifier: TestVerifier(), random: SeededGenerator(seed: 1),
                presence: PresenceRules(),
                typing: TypingRules(), shared: shared))
        users.setWatched("ada", true)
        stage.connect(1, subject: "ada", session: "phone")
        try stage.join("realtime:a", 1, #"{"app_state":"background"}"#)
    }

    private var status: ConnectionStatus { users.status(of: "ada", at: stage.now.monotonic) }

    private func ping() throws -> String {
        try #require(stage.hub.acknowledgementPing(for: 1)).pingPayload
    }

    @Test("Who owes a proof is in the window of its app's state since the last one, and gone when it is over")
    func silent() throws {
        let last = stage.now.monotonic
        try stage.tick(after: 4000)
        _ = try ping()
        try stage.tick(after: 4999)
        #expect(status == .live, "an answer may take its time")
        try stage.tick(after: 1)
        #expect(status == .inGrace(until: last + 20_000))
        try stage.tick(after: 11_000)
        #expect(status == .away)
    }

    @Test("Who answers late was never gone")
    func late() throws {
        for _ in 0..<10 {
            let asked = try ping()
            try stage.tick(after: 4000)
            #expect(status == .live)
            _ = try stage.watch { $0.receivePong(asked.utf8, from: 1) }
            #expect(status == .live)
        }
        let asked = try ping()
        try stage.tick(after: 10_000)
        #expect(status != .live)
        _ = try stage.watch { $0.receivePong(asked.utf8, from: 1) }
        #expect(status == .live)
    }

    @Test("Whatever a client sends proves that it is there")
    func anyFrame() throws {
        _ = try ping()
        try stage.tick(after: 4000)
        _ = try stage.say(#"[null,"7","phoenix","heartbeat",{}]"#, from: 1)
        try stage.tick(after: 4000)
        #expect(status == .live)
    }

    @Test("Whoever is stopped behind a frame that crossed the ping is not taken for there")
    func frameThatCrossesThePing() throws {
        _ = try ping()
        try stage.tick(after: 500)
        _ = try stage.say(#"[null,"7","phoenix","heartbeat",{}]"#, from: 1)
        let last = stage.now.monotonic
        try stage.tick(after: 5000)
        #expect(status == .inGrace(until: last + 20_000))
    }

    @Test("The window of one who is cut off after a silence began with the silence")
    func cutOffAfterSilence() throws {
        stage.hub.disconnect(1, at: stage.now, afterSilence: 15_000)
        #expect(status == .inGrace(until: stage.now.monotonic + 5000))
    }

    @Test("Sockets of a watched device are asked, also those that come later")
    func watched() throws {
        let phone = DeviceKey.makeKey(user: "ada", session: "phone")
        users.setWatched("ada", false)
        try stage.tick(after: 1000)
        #expect(!stage.hub.isWatched(1))
        devices.setWatched(phone, true)
        try stage.tick(after: 1000)
        #expect(stage.hub.isWatched(1))
        stage.connect(2, subject: "ada", session: "phone")
        stage.connect(3, subject: "ada", session: "laptop")
        #expect(stage.hub.isWatched(2) && !stage.hub.isWatched(3))
        devices.setWatched(phone, false)
        try stage.tick(after: 1000)
        #expect(!stage.hub.isWatched(1) && !stage.hub.isWatched(2))
    }

    @Test("A user of whom one socket answers, and of whom one is not asked, is there")
    func twoSockets() throws {
        _ = try ping()
        stage.connect(2, subject: "ada")
        try stage.tick(after: 60_000)
        #expect(status == .live)
        try stage.disconnect(2)
        #expect(status == .away)
    }
}

extension Frame {
    /// Of a ping (RFC 6455, section 5.5.2): what stands behind opcode and length.
    var pingPayload: String { String(decoding: bytes.dropFirst(2), as: UTF8.self) }
}
