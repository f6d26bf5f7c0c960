import Push
import Testing
import Wire

@Suite struct WrittenNotificationTests {
    @Test("One of an id is remembered for each user, for a minute")
    func remembered() {
        var written = WrittenNotifications()
        written.add("order-7", to: ["ann", "bob"], at: 1000)
        #expect(written.contains("order-7", to: "ann", at: 60_999))
        #expect(!written.contains("order-7", to: "ann", at: 61_000))
        #expect(!written.contains("order-7", to: "cat", at: 1000))
        #expect(!written.contains("order-8", to: "ann", at: 1000))
    }

    @Test func isBounded() {
        var written = WrittenNotifications()
        for number in 0..<(WrittenNotifications.capacity + 10) {
            written.add(Name("\(number)"), to: ["ann"], at: 0)
        }
        #expect(written.contains("0", to: "ann", at: 1))
        #expect(!written.contains(Name("\(WrittenNotifications.capacity)"), to: "ann", at: 1))
        written.add("later", to: ["ann"], at: WrittenNotifications.life)
        #expect(written.contains("later", to: "ann", at: WrittenNotifications.life))
    }
}
