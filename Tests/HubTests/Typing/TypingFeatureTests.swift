import Hub
import TestSupport
import Testing
import Wire

/// `Typing` by itself: a channel with two members, and what it leaves in the context.
@Suite final class TypingFeatureTests {
    private let channel = LocalChannel(key: ChannelKey(topic: "realtime:a", isPrivate: false))
    private let registry: TypingRegistry
    private let typing: Typing
    private var hub = HubContext(loop: 0, limits: HubLimits(), random: SeededGenerator(seed: 1))

    init() {
        let registry = TypingRegistry()
        self.registry = registry
        typing = Typing(rules: TypingRules(), registry: registry)
        channel.members.addSlot(1, .v2)
        channel.members.addSlot(2, .v2)
        hub.advanceTime(to: Stage.start)
    }

    private func says(_ isTyping: Bool, _ name: String = "Ada") throws -> TypingSignal {
        let text = #"{"type":"broadcast","event":"typing","payload":{"typing":\#(isTyping),"name":"\#(name)"}}"#
        return try #require(typing.signal(in: .text(Array(text.utf8))))
    }

    /// What is in the context since the last call: `1,2` and the payload for what is sent, `relay` for what is relayed.
    private func done() throws -> [String] {
        defer { hub.actions = [] }
        return try hub.actions.map { action in
            switch action {
            case .fanOut(let frame, let audience, nil, .step(.typing(channel.key))):
                "\(audience.map(String.init).joined(separator: ",")) \(try frame.shown())"
            case .relay(.typing(channel.key, .started)): "relay started"
            case .relay(.typing(channel.key, .stopped)): "relay stopped"
            case .relay(.typing(channel.key, .ended)): "relay ended"
            default: "something else"
            }
        }
    }

    private func frame(_ isTyping: Bool, _ name: String = "Ada") -> String {
        #"1,2 [null,null,"realtime:a","broadcast",{"type":"broadcast","event":"typing","payload":{"typing":\#(isTyping),"name":"\#(name)"}}]"#
    }

    @Test func aStartIsToldOnceAndEndsBySilence() throws {
        typing.handleSignal(try says(true), of: "ada", in: channel, &hub)
        #expect(try done() == ["relay started", frame(true)])
        #expect(hub.counters.typingStarts == 1)
        typing.handleSignal(try says(true), of: "ada", in: channel, &hub)
        #expect(try done() == ["relay started"], "the members know")
        #expect(hub.nextDue == Stage.start.monotonic + 3000)

        hub.advanceTime(to: Stage.start.advanced(by: 3000))
        typing.updateTypists(in: channel, &hub)
        #expect(try done() == [frame(false)], "each loop ends by itself what nobody renews")
        hub.advanceTime(to: Stage.start.advanced(by: 6000))
        typing.updateTypists(in: channel, &hub)
        #expect(try done() == [] && channel.isIdle)
    }

    @Test func theRowOfItsAuthorEndsIt() throws {
        registry.watchChannel(channel.key)
        typing.handleSignal(try says(true), of: "ada", in: channel, &hub)
        #expect(registry.typists(in: channel.key, at: 0).map { $0.user } == ["ada"])
        _ = try done()
        let row = #"{"schema":"public","table":"messages","record":{"sender_id":"SENDER"}}"#
        func insert(by sender: String) throws -> JSON {
            try JSON(parsing: Array(row.replacing("SENDER", with: sender).utf8)[...])
        }
        let (bobs, adas) = (try insert(by: "bob"), try insert(by: "ada"))
        typing.endTyping(ofAuthorOf: bobs, in: channel, &hub)
        #expect(try done() == [])
        typing.endTyping(ofAuthorOf: adas, in: channel, &hub)
        #expect(try done() == ["relay ended", frame(false)])
        #expect(registry.typists(in: channel.key, at: 0).isEmpty)
    }

    @Test func whatAnotherLoopHeardIsNotRelayedOn() throws {
        typing.applyRelay(.started(.user("bob"), try says(true, "Bob")), to: channel, &hub)
        #expect(try done() == [frame(true, "Bob")])
        typing.applyRelay(.ended(.user("bob")), to: channel, &hub)
        #expect(try done() == [frame(false, "Bob")])
    }
}
