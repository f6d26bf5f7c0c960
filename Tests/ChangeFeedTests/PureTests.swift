import ChangeFeed
import Postgres
import Testing

@testable import PostgresFixtures

@Suite struct PureTests {
    @Test func theStatementsAreThoseOfTheirFiles() {
        for statements in FeedStatements.files { #expect(statements.problems == []) }
    }

    @Test func snapshots() {
        #expect(Snapshot("10:20:12,15")?.running == [12, 15])
        #expect(Snapshot("10:20:")?.xmax == 20)
        for bad in ["", "10", "10:20", "a:20:", "10:20:x", "10:20:1;drop", "-1:2:", "1:2:3:4"] {
            #expect(Snapshot(bad) == nil, "\(bad)")
        }
    }

    @Test(arguments: [
        ("2026-11-21 08:00:00.123456+00", "2026-11-21T08:00:00.123Z"),
        ("2026-11-21 08:00:00+00", "2026-11-21T08:00:00.000Z"),
        ("2026-11-21 08:00:00.5+00", "2026-11-21T08:00:00.500Z"),
    ])
    func timestamps(given: String, expected: String) {
        Array(given.utf8).withUnsafeBufferPointer { #expect(Timestamps.forClients($0) == expected) }
    }

    @Test(arguments: [
        ("2026-11-21 08:00:00.123456+00", Int64(1_795_248_000_123_456)),
        ("2024-02-29 23:59:59.5+00", Int64(1_709_251_199_500_000)),
        ("2000-03-01 00:00:00+00", Int64(951_868_800_000_000)),
        ("2100-03-01 00:00:00.000001+00", Int64(4_107_542_400_000_001)),
        ("1970-01-01 00:00:00+00", Int64(0)),
        ("2026-12-31 23:59:59.999999+00", Int64(1_798_761_599_999_999)),
    ])
    func microsecondsSince1970(given: String, expected: Int64) {
        Array(given.utf8).withUnsafeBufferPointer { #expect(Timestamps.microseconds($0) == expected) }
    }

    @Test(arguments: ["infinity", "2026-11-21", ""])
    func whatIsNoMomentHasNoNumber(given: String) {
        Array(given.utf8).withUnsafeBufferPointer { #expect(Timestamps.microseconds($0) == nil) }
    }

    @Test func handedChangesAreForgottenWhenTheCursorIsSafe() {
        var handed = DeliveredChanges()
        func key(_ id: Int64) -> DeliveredChanges.Key { .init(id: id, writtenAt: 1) }
        handed.addKey(key(1))
        handed.windowCompleted()
        handed.cursorStored(covering: handed.covered, insertedAt: 100, flushedTo: 90)
        handed.addKey(key(2))
        handed.windowCompleted()
        handed.cursorStored(covering: handed.covered, insertedAt: 200, flushedTo: 150)
        // The first store's commit lies before 200, of which nothing is safe yet.
        #expect(handed.toSkip() == [key(1), key(2)])
        handed.addKey(key(3))
        handed.windowCompleted()
        handed.cursorStored(covering: handed.covered, insertedAt: 300, flushedTo: 200)
        #expect(handed.toSkip() == [key(2), key(3)])
        handed.cursorStored(covering: handed.covered, insertedAt: 300, flushedTo: 300)
        #expect(handed.toSkip().isEmpty)
    }

    /// A window that broke off is read again from the cursor: what it handed on is not covered by any store.
    @Test func whatABrokenWindowHandedOnIsNotForgotten() {
        var handed = DeliveredChanges()
        func key(_ id: Int64) -> DeliveredChanges.Key { .init(id: id, writtenAt: 1) }
        handed.addKey(key(1))
        handed.windowCompleted()
        handed.addKey(key(2))
        handed.cursorStored(covering: handed.covered, insertedAt: 100, flushedTo: 90)
        handed.cursorStored(covering: handed.covered, insertedAt: 200, flushedTo: 200)
        #expect(handed.toSkip() == [key(2)])
        handed.windowCompleted()
        handed.cursorStored(covering: handed.covered, insertedAt: 300, flushedTo: 300)
        handed.cursorStored(covering: handed.covered, insertedAt: 400, flushedTo: 400)
        #expect(handed.toSkip().isEmpty)
    }

    /// Numbers of `roost.meta` and `roost.node` that somebody wrote: a hub that starts reads them.
    @Test func numbersThatNoTransactionHasDoNoHarm() {
        #expect(Snapshot(prunedUpTo: "5", sparing: "3")?.xmax == 6)
        for highest in ["18446744073709551615", "9223372036854775807"] {
            let pruned = Snapshot(prunedUpTo: highest, sparing: "1")
            #expect(pruned?.xmax == UInt64(Int64.max), "all may be gone")
        }
        #expect(Snapshot("1:18446744073709551615:") == nil)
        #expect(Snapshot("0:0:") == nil)
    }
}
