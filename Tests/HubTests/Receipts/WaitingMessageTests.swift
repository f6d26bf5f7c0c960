import Hub
import Synchronization
import TestSupport
import Testing
import Wire

/// What a hub answers of a message that waits for a policy or a filter before it can be sent.
@Suite struct WaitingMessageTests {
    private static let messages = #"{"event":"INSERT","schema":"public","table":"messages"}"#

    private let stage: Stage
    private let registry = ReceiptRegistry()
    private let answers = Answers()

    private final class Answers: Sendable {
        private let content = Mutex<[ReceiptAnswer.Verdict]>([])

        func add(_ answers: [ReceiptAnswer]) { content.withLock { $0 += answers.map(\.verdict) } }

        /// Those since the last call.
        func take() -> [ReceiptAnswer.Verdict] {
            content.withLock { verdicts in
                defer { verdicts = [] }
                return verdicts
            }
        }
    }

    init() {
        let shared = HubShared(
            recovery: SessionRegistry(window: 0), users: UserPresence(notesTransitions: false),
            devices: UserPresence(notesTransitions: false), receipts: registry)
        stage = Stage(
            hub: Hub(
                loop: 0, limits: HubLimits(), verifier: TestVerifier(), random: SeededGenerator(seed: 1),
                presence: PresenceRules(), typing: TypingRules(), shared: shared))
        registry.sendAnswers { [answers] in answers.add($0) }
    }

    /// Opens a socket that hears messages, and returns its group.
    private func open(_ slot: Slot = 1, session: String = "phone") throws -> ChangeGroupID {
        stage.connect(slot, subject: "ada", session: session)
        try stage.join("realtime:a", slot, #"{"postgres_changes":[\#(Self.messages)],"app_state":"active"}"#)
        let group = try #require(stage.subscribed.last)
        _ = try stage.watch { $0.changeSubscription(group, is: .live) }
        return group
    }

    private func waits(_ group: ChangeGroupID, _ readers: ChangeDelivery.Recipients?) throws {
        _ = try stage.watch { $0.deliverEvent(.messageWaits(7, [MessageWait(group: group, readers: readers)])) }
    }

    private func send(to group: ChangeGroupID) throws {
        _ = try stage.watch {
            $0.deliverEvent(
                .change(
                    ChangeDelivery(
                        group: group, operation: .insert, ids: [1], data: Array("{}".utf8), message: 7)))
        }
    }

    private func ask(_ slots: [Slot] = [1], device: Name? = nil) throws {
        _ = try stage.watch {
            $0.deliverEvent(
                .receipts([
                    ReceiptQuestion(
                        change: 7, user: "ada", device: device, slots: slots, row: Stage.row, demandsShown: true,
                        until: stage.now.monotonic + 5000)
                ]))
        }
    }

    private func prove(_ slot: Slot = 1) throws {
        let ping = try #require(stage.hub.acknowledgementPing(for: slot)).pingPayload
        _ = try stage.watch { $0.receivePong(ping.utf8, from: slot) }
    }

    @Test("It is not unheard before it is decided, and whoever is sent it then has to prove it")
    func decidedLater() throws {
        let group = try open()
        try waits(group, .everybody)
        try ask()
        try prove()
        #expect(answers.take().isEmpty)
        try send(to: group)
        #expect(answers.take().isEmpty)
        try waits(group, nil)
        #expect(answers.take().isEmpty, "it is asked now")
        try prove()
        #expect(answers.take() == [.shown])
    }

    @Test("Whoever is not sent it when it is decided did not hear it")
    func notForIt() throws {
        let group = try open()
        try waits(group, .everybody)
        try ask()
        try waits(group, nil)
        #expect(answers.take() == [.unheard])
    }

    @Test("It waits for those whose policy is not decided, and for nobody else")
    func forBearers() throws {
        let group = try open()
        try waits(group, .bearers([Stage.claims(subject: "bob", session: "his")]))
        try ask()
        #expect(answers.take() == [.unheard])
        // Once a filter is decided, a policy may not be.
        try waits(group, .everybody)
        try ask()
        try waits(group, .bearers([Stage.claims(subject: "ada", session: "phone")]))
        #expect(answers.take().isEmpty)
        try waits(group, nil)
        #expect(answers.take() == [.unheard])
    }

    @Test("A socket that has it under way is not all: another may be sent it yet, and shows it")
    func anotherSocket() throws {
        let group = try open()
        stage.connect(2, subject: "ada", session: "laptop")
        try stage.join("realtime:b", 2, #"{"postgres_changes":[\#(Self.messages)],"app_state":"active"}"#)
        let other = try #require(stage.subscribed.last)
        _ = try stage.watch { $0.changeSubscription(other, is: .live) }
        try waits(other, .everybody)
        try send(to: group)
        try ask([1, 2])
        _ = try stage.say(#"["1","5","realtime:a","app_state",{"state":"background"}]"#, from: 1)
        #expect(answers.take().isEmpty, "the other one is on the screen")
        try send(to: other)
        try waits(other, nil)
        try prove(2)
        #expect(answers.take() == [.shown])
    }

    @Test("A socket that goes from the screen, or ends, is waited for no more")
    func goes() throws {
        let group = try open()
        try waits(group, .everybody)
        try ask()
        _ = try stage.say(#"["1","5","realtime:a","app_state",{"state":"background"}]"#, from: 1)
        #expect(answers.take() == [.unheard])
        _ = try stage.say(#"["1","6","realtime:a","app_state",{"state":"active"}]"#, from: 1)
        try ask()
        try stage.disconnect(1)
        #expect(answers.take() == [.lost])
    }

    @Test("What is never decided is forgotten, and so is a question whose time is over")
    func bounded() throws {
        let group = try open()
        try waits(group, .everybody)
        try ask()
        try stage.tick(after: 6000)
        try waits(group, nil)
        #expect(answers.take().isEmpty)
        try waits(group, .everybody)
        try stage.tick(after: 60_000)
        try ask()
        #expect(answers.take() == [.unheard])
    }

    @Test("A device that is asked by itself is not answered for by another one of its user")
    func byDevice() throws {
        let group = try open()
        try send(to: group)
        try ask([1], device: "laptop")
        #expect(answers.take() == [.unheard])
        try ask([1], device: "phone")
        try prove()
        #expect(answers.take() == [.shown])
    }
}

extension Stage {
    fileprivate static let row = MessageIdentity(schema: "public", table: "messages", key: [("id", "7")])
}
