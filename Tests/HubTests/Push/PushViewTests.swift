import Hub
import TestSupport
import Testing
import Wire

/// Who types and who is present, for those who ask from outside of the channel.
@Suite struct PushViewTests {
    private static let key = ChannelKey(topic: "realtime:a", isPrivate: false)
    private let registry = TypingRegistry()
    private let log = PresenceLog()

    private func stage() throws -> Stage {
        let stage = Stage(
            hub: Hub(
                loop: 0, verifier: TestVerifier(), random: SeededGenerator(seed: 1), presence: .plain, presenceLog: log,
                typingRegistry: registry))
        stage.connect(1, subject: "ada")
        try stage.join("realtime:a", 1, #"{"presence":{"key":"ada"}}"#)
        return stage
    }

    private func type(_ stage: Stage, _ isTyping: Bool) throws {
        _ = try stage.say(
            #"["1","5","realtime:a","broadcast",{"type":"broadcast","event":"typing","payload":{"typing":\#(isTyping),"name":"Ada"}}]"#,
            from: 1)
    }

    private func typists(_ stage: Stage) -> [String] {
        registry.typists(in: Self.key, at: stage.now.monotonic).map {
            ($0.user?.text ?? "") + String(decoding: $0.payload, as: UTF8.self)
        }
    }

    @Test func typistsAreKnownWhereSomebodyWatches() throws {
        let stage = try stage()
        try type(stage, true)
        #expect(typists(stage).isEmpty, "nobody watches")
        registry.watchChannel(Self.key)
        try type(stage, true)
        #expect(typists(stage) == [#"ada{"typing":true,"name":"Ada"}"#])
        try type(stage, false)
        #expect(typists(stage).isEmpty)
        try type(stage, true)
        stage.now = stage.now.advanced(by: 3000)
        #expect(typists(stage).isEmpty, "by silence")
        try type(stage, true)
        try stage.disconnect(1)
        #expect(typists(stage).isEmpty, "by a loss")
        registry.unwatchChannel(Self.key)
        #expect(typists(stage).isEmpty)
    }

    @Test func whoIsPresentIsKnownAlsoIfTheyCameBefore() throws {
        let stage = try stage()
        try stage.track(1)
        #expect(log.presentKeys(in: Self.key).isEmpty, "nobody watches")
        log.watchChannel(Self.key)
        #expect(log.presentKeys(in: Self.key) == ["ada"])
        stage.connect(2, subject: "bob")
        try stage.join("realtime:a", 2, #"{"presence":{"key":"bob"}}"#)
        try stage.track(2)
        #expect(log.presentKeys(in: Self.key) == ["ada", "bob"])
        try stage.say(#"["1","9","realtime:a","phx_leave",{}]"#, from: 1)
        #expect(log.presentKeys(in: Self.key) == ["bob"])
        log.unwatchChannel(Self.key)
        #expect(log.presentKeys(in: Self.key).isEmpty)
    }
}

extension Stage {
    fileprivate func track(_ slot: Slot) throws {
        _ = try say(
            #"["1","7","realtime:a","presence",{"type":"presence","event":"track","payload":{"n":1}}]"#, from: slot)
    }
}
