import Hub
import TestSupport
import Testing

@Suite struct EventCursorTests {
    private static let channels: [(ChannelKey, EventPosition)] = [
        (
            ChannelKey(topic: "realtime:a", isPrivate: false),
            EventPosition(rows: "AQ-_.1z", history: "k3.4f", stream: nil)
        ),
        (ChannelKey(topic: "realtime:a", isPrivate: true), EventPosition(rows: "AQ-_.1z", history: nil, stream: nil)),
        (ChannelKey(topic: "realtime:b", isPrivate: true), EventPosition(rows: "Bx.2", history: nil, stream: nil)),
        (
            ChannelKey(topic: "realtime:stream:s", isPrivate: true),
            EventPosition(rows: nil, history: nil, stream: .init(id: 0xBEEF, offset: 12_345))
        ),
    ]

    @Test func whatIsWrittenIsRead() throws {
        let text = try #require(EventCursor.text(Self.channels))
        let cursor = try #require(EventCursor(text))
        for (key, position) in Self.channels { #expect(cursor[key] == position) }
        #expect(cursor[ChannelKey(topic: "realtime:b", isPrivate: false)] == nil, "a public channel is another")
        #expect(text.ranges(of: "AQ-_.1z").count == 1, "rows that are at one place are said once")
        #expect(text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "it goes into a header")
    }

    @Test func whoIsNowhereIsNotInIt() throws {
        let key = ChannelKey(topic: "realtime:a", isPrivate: false)
        let text = try #require(EventCursor.text([(key, EventPosition())]))
        #expect(try #require(EventCursor(text))[key] == nil)
    }

    @Test(arguments: [
        "", "2", "1x", "nonsense", "1~", "1~~", "1~zzzzzzzzz", "1~a!", "1~a!q1", "1~a!s", "1~a!s1-", "1~a!s1--2",
        "1~-1",
    ])
    func whatIsNoneIsNotRead(_ text: String) {
        #expect(EventCursor(text) == nil)
    }

    @Test func oneThatIsTooLongIsNotMadeAndNotRead() {
        let position = EventPosition(
            rows: String(repeating: "x", count: EventCursor.longest), history: nil, stream: nil)
        #expect(EventCursor.text([(ChannelKey(topic: "realtime:a", isPrivate: false), position)]) == nil)
        #expect(EventCursor("1~a!r" + String(repeating: "x", count: EventCursor.longest)) == nil)
    }

    /// Whatever a client sends: nothing traps, and what is read can be said again.
    @Test func forgeries() throws {
        var mutator = Mutator(
            random: SeededGenerator(seed: 7),
            tokens: ["~", "!r", "!s", "!h", "-", "zzzzzzzz", "1~"].map { Array($0.utf8) })
        let good = Array(try #require(EventCursor.text(Self.channels)).utf8)
        for _ in 0..<20_000 {
            guard let cursor = EventCursor(String(decoding: mutator.mutate(good, with: [good]), as: UTF8.self)) else {
                continue
            }
            let said = Self.channels.compactMap { key, _ in cursor[key].map { (key, $0) } }
            if let text = EventCursor.text(said) { #expect(EventCursor(text) != nil, "\(text)") }
        }
    }

    @Test func asManyChannelsAsOneMayHaveFit() throws {
        let channels = (0..<EventRequest.mostChannels).map { number in
            (
                ChannelKey(topic: "realtime:room-\(number)", isPrivate: true),
                EventPosition(rows: "AQAAAADf9JsCAN_0mwIAAA.1z141z", history: "3w5e11264sgsf.zzzzz", stream: nil)
            )
        }
        #expect(EventCursor.text(channels) != nil)
    }
}
