import Hub
import TestSupport
import Testing
import Wire

/// What is noted for a backend of what happens on all loops of a hub.
@Suite struct HappeningsTests {
    private let happenings = Happenings(most: 10)

    private func stage(_ loop: Int, _ happenings: Happenings) -> Stage {
        Stage(hub: Hub(loop: loop, verifier: TestVerifier(), random: SeededGenerator(seed: 1), happenings: happenings))
    }

    /// The events since this was asked last: `channel.occupied realtime:a`.
    private func take(_ happenings: Happenings, most: Int = 100) -> [String] {
        happenings.takeEvents(upTo: most, mostBytes: 1 << 20).map { event in
            [event.kind.rawValue, event.channel?.topic, event.key, event.user?.text, event.count.map { "\($0)" }]
                .compactMap { $0 }.joined(separator: " ")
        }
    }

    private func record(_ ref: String, _ key: String) -> PresenceRecord {
        PresenceRecord(
            channel: ChannelKey(topic: "realtime:a", isPrivate: false), ref: Name(ref), key: key, hasMadeKey: false,
            user: nil, payload: Array("{}".utf8), appState: nil)
    }

    @Test func aChannelIsOccupiedByTheFirstOfAllLoopsAndVacatedByTheLast() throws {
        let stages = [stage(0, happenings), stage(1, happenings)]
        for stage in stages { stage.connect(1, subject: "ada") }
        #expect(take(happenings) == ["client.connected ada", "client.connected ada"])
        for stage in stages { try stage.join("realtime:a", 1) }
        #expect(take(happenings) == ["channel.occupied realtime:a"])
        try stages[0].say(#"["1","2","realtime:a","phx_leave",{}]"#, from: 1)
        #expect(take(happenings) == [])
        try stages[1].disconnect(1)
        #expect(take(happenings) == ["channel.vacated realtime:a", "client.disconnected ada"])
    }

    @Test func aProcessBeginsWithSayingSo() throws {
        happenings.hubStarted(at: 5)
        stage(0, happenings).connect(1, subject: "ada")
        #expect(take(happenings) == ["hub.started", "client.connected ada"])
    }

    @Test func bothEventsOfASocketHaveItsName() throws {
        let stage = stage(0, happenings)
        stage.connect(1)
        stage.connect(2)
        try stage.disconnect(1)
        let clients = happenings.takeEvents(upTo: 10, mostBytes: 1 << 20).map(\.client)
        #expect(clients.count == 3 && clients[0] == clients[2] && clients[0] != clients[1] && clients[0] != nil)
    }

    @Test func aMemberJoinsWithTheFirstPresenceOfItsKeyAndLeavesWithTheLast() {
        let log = PresenceLog(telling: happenings)
        log.putRecord(record("1", "ada"))
        log.putRecord(record("2", "ada"))
        log.putRecord(record("2", "ada"))
        log.remove("1")
        #expect(take(happenings) == ["member.joined realtime:a ada"])
        log.remove("2")
        log.remove("2")
        #expect(take(happenings) == ["member.left realtime:a ada"])
    }

    @Test func whatDoesNotFitIsCountedInItsPlace() {
        let happenings = Happenings(most: 2)
        let log = PresenceLog(telling: happenings)
        for number in 1...5 { log.putRecord(record("\(number)", "\(number)")) }
        #expect(happenings.waiting == 2 && happenings.missed == 3)
        #expect(take(happenings, most: 1) == ["member.joined realtime:a 1"])
        log.putRecord(record("6", "6"))
        #expect(
            take(happenings) == [
                "member.joined realtime:a 2", "events.missed 3", "member.joined realtime:a 6",
            ])
    }

    @Test func whatDidNotFitIsToldThoughNothingElseHappens() {
        let happenings = Happenings(most: 2)
        let log = PresenceLog(telling: happenings)
        for number in 1...5 { log.putRecord(record("\(number)", "\(number)")) }
        #expect(take(happenings, most: 2).last == "member.joined realtime:a 2")
        #expect(happenings.waiting == 1)
        #expect(take(happenings) == ["events.missed 3"])
        #expect(take(happenings) == [] && happenings.waiting == 0)
    }

    @Test func bytesAreBoundedToo() {
        let happenings = Happenings(most: 100, mostBytes: 1000)
        let log = PresenceLog(telling: happenings)
        for number in 1...20 { log.putRecord(record("\(number)", "\(number)")) }
        #expect(happenings.missed > 10)
        // One that is larger than what is asked for comes alone.
        #expect(happenings.takeEvents(upTo: 10, mostBytes: 1).count == 1)
    }
}
