import Listening
import Testing

/// Notifications have one number on all hubs that hear them, whenever each began to listen.
@Suite struct NotificationOrderTests {
    private struct Heard: Equatable {
        let channel: String
        let payload: String
    }

    /// What a hub makes of all that Postgres says from some moment on, that of its LISTEN.
    private func numbers(_ stream: ArraySlice<Heard>, own: String, channels: Set<String>) -> [Int: String] {
        var order = NotificationOrder(own: own)
        var numbers: [Int: String] = [:]
        for (index, heard) in zip(stream.indices, stream) {
            if heard.channel == NotificationOrder.channel {
                _ = order.received(mark: heard.payload)
            } else if channels.contains(heard.channel) {
                numbers[index] = order.nextNumber(on: heard.channel)
            }
        }
        return numbers
    }

    @Test func hubsThatBeginAtDifferentTimesGiveTheSameNumbers() {
        var stream: [Heard] = []
        func say(_ count: Int) {
            for n in 0..<count { stream.append(Heard(channel: n % 3 == 0 ? "b" : "a", payload: "same")) }
        }
        func mark(_ name: String) { stream.append(Heard(channel: NotificationOrder.channel, payload: name)) }
        mark("one")
        say(10)
        let listened = stream.count
        say(5)
        mark("two")
        say(20)
        mark("three")
        mark("one")
        say(7)
        let one = numbers(stream[...], own: "one", channels: ["a", "b"])
        let two = numbers(stream[listened...], own: "two", channels: ["a", "b"])
        let other = numbers(stream[listened...], own: "two", channels: ["a"])
        #expect(Set(one.values).count == one.count, "each has another one")
        #expect(one.count == 42 && two.count == 27)
        let before = two.keys.contains { $0 < listened + 5 }
        #expect(!before, "what came before its own mark counts as not heard")
        // Here "one" is a mark that the second hub never saw before: its numbers are others until the next mark.
        for (index, number) in two where index < stream.count - 7 { #expect(one[index] == number) }
        for (index, number) in other { #expect(two[index] == number, "a hub that listens to fewer channels") }
    }

    /// What the macros of tests may call.
    private final class Order {
        private var value = NotificationOrder(own: "mine")
        var hasBegun: Bool { value.hasBegun }
        func came(_ mark: String) -> Bool { value.received(mark: mark) }
        func next(_ channel: String) -> String? { value.nextNumber(on: channel) }
    }

    @Test func nothingIsNumberedBeforeTheOwnMark() {
        let order = Order()
        #expect(order.next("a") == nil)
        #expect(!order.came("another"))
        #expect(order.next("a") == nil)
        #expect(!order.hasBegun)
        #expect(order.came("mine"))
        #expect(order.next("a") == "notification mine a 1")
        #expect(order.next("b") == "notification mine b 1")
        #expect(!order.came("mine"), "once")
        #expect(order.next("a") == "notification mine a 2")
        #expect(!order.came(String(repeating: "x", count: 65)))
        #expect(!order.came("another"))
        #expect(order.next("a") == "notification another a 1")
    }
}
