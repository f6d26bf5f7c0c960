import Foundation
import RoostClient
import Testing
import Wire

@Suite struct TypingMapTests {
    private func json(_ text: String) -> JSON { JSON(trusted: Array(text.utf8)[...]) }

    private func users(_ map: TypingMap) -> [String?] { map.set.typists.map(\.userID) }

    @Test func startsAndStops() {
        var map = TypingMap()
        let outcome10 = map.applyTyping(json("{\"typing\":true,\"user_id\":\"a\"}"), at: .zero)
        #expect(outcome10)
        let outcome11 = map.applyTyping(json("{\"typing\":true,\"user_id\":\"b\"}"), at: .zero)
        #expect(outcome11)
        let outcome12 = map.applyTyping(json("{\"typing\":true,\"user_id\":\"a\"}"), at: .seconds(1))
        #expect(!outcome12)
        #expect(users(map) == ["a", "b"])
        let outcome13 = map.applyTyping(json("{\"typing\":false,\"user_id\":\"a\",\"name\":\"Ada\"}"), at: .seconds(2))
        #expect(outcome13)
        let outcome14 = map.applyTyping(json("{\"typing\":false,\"user_id\":\"a\"}"), at: .seconds(2))
        #expect(!outcome14)
        #expect(users(map) == ["b"])
    }

    @Test func whoHasNoUserIsKnownByThePayload() {
        var map = TypingMap()
        _ = map.applyTyping(json("{\"typing\":true,\"name\":\"x\",\"color\":1}"), at: .zero)
        let outcome15 = map.applyTyping(json("{\"color\":1, \"name\":\"x\",\"typing\":false}"), at: .zero)
        #expect(outcome15)
        #expect(map.set.typists.isEmpty)
    }

    @Test func theStateTakesThePlaceOfWhatWasKnown() {
        var map = TypingMap()
        _ = map.applyTyping(json("{\"typing\":true,\"user_id\":\"old\"}"), at: .zero)
        let text = "{\"typing\":[{\"typing\":true,\"user_id\":\"a\"},{\"typing\":true,\"user_id\":\"b\"}],\"count\":2}"
        let isNew = map.applyState(json(text), at: .zero)
        #expect(isNew)
        #expect(users(map) == ["a", "b"])
    }

    @Test func nobodyTypesForever() {
        var map = TypingMap()
        _ = map.applyTyping(json("{\"typing\":true,\"user_id\":\"a\"}"), at: .zero)
        _ = map.applyTyping(json("{\"typing\":true,\"user_id\":\"b\"}"), at: .seconds(4))
        #expect(map.nextDeadline == .seconds(6))
        let outcome16 = map.removeSilent(.seconds(6))
        #expect(outcome16)
        #expect(users(map) == ["b"])
        let outcome17 = map.clear()
        #expect(outcome17)
        #expect(map.nextDeadline == nil)
    }

    @Test func aLossClearsItAtOnce() {
        let client = ClientHarness()
        client.openRoom()
        client.goOnline()
        client.subscribe()
        client.answerJoin()
        client.hear("broadcast", "{\"event\":\"typing\",\"payload\":{\"typing\":true,\"user_id\":\"a\"}}")
        #expect(client.machine.channels[ClientHarness.room]?.typing.set.typists.count == 1)
        client.socketEnds()
        #expect(client.machine.channels[ClientHarness.room]?.typing.set.typists.isEmpty == true)
    }

    @Test func whatWasTypedEarlierIsNotBeingTyped() {
        let client = ClientHarness()
        client.openRoom()
        client.goOnline()
        client.subscribe()
        client.answerJoin()
        client.hear(
            "broadcast",
            "{\"event\":\"typing\",\"payload\":{\"typing\":true,\"user_id\":\"a\"},\"meta\":{\"replayed\":true}}")
        #expect(client.machine.channels[ClientHarness.room]?.typing.set.typists.isEmpty == true)
    }

    @Test func oneStartASecondAndTheStopAreSent() {
        var throttle = TypingThrottle()
        var sent: [Moment] = []
        for key in 0..<35 {
            let now = Moment.milliseconds(100 * key)
            if throttle.shouldSend(true, at: now) { sent.append(now) }
        }
        #expect(sent == [0, 1, 2, 3].map { .seconds($0) })
        let (stop, again, start) = (
            throttle.shouldSend(false, at: .seconds(4)), throttle.shouldSend(false, at: .seconds(4)),
            throttle.shouldSend(true, at: .seconds(4))
        )
        #expect(stop)
        #expect(!again)
        #expect(start)
    }
}
