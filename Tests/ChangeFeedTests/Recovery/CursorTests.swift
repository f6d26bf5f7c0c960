import ChangeFeed
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Cursors and marks, without a database.
    @Suite struct CursorTests {
        private static let epoch = DatabaseEpoch(systemIdentifier: "7000000000000000000", timeline: 1)

        private static func random(
            after earlier: Snapshot?, _ generator: inout SystemRandomNumberGenerator
        ) -> Snapshot {
            let base = earlier?.xmax ?? UInt64.random(in: 3...(1 << 40), using: &generator)
            let xmax = base + UInt64.random(in: 0...200, using: &generator)
            let lowest = earlier.map { $0.running.first ?? $0.xmax } ?? base - min(base - 3, 50)
            let running = (lowest..<max(lowest, xmax)).filter { number in
                // What was finished before stays finished.
                if let earlier, number < earlier.xmax, !earlier.running.contains(number) { return false }
                return Int.random(in: 0..<4, using: &generator) == 0
            }
            return Snapshot(xmax: xmax, running: running)
        }

        @Test func roundTrips() throws {
            var generator = SystemRandomNumberGenerator()
            for _ in 0..<2000 {
                let seen = Self.random(after: nil, &generator)
                let window = Self.random(after: seen, &generator)
                let cursor = FeedCursor(
                    epoch: Self.epoch, seen: seen, window: window,
                    id: Int64.random(in: 0...Int64.max, using: &generator))
                #expect(FeedCursor(cursor.text) == cursor)
                #expect(
                    cursor.text.utf8.allSatisfy { $0 < 0x80 && ($0 == 0x2E || $0 == 0x2D || $0 == 0x5F || $0 >= 0x30) })
            }
        }

        @Test func anyTextIsReadOrRefused() {
            var generator = SystemRandomNumberGenerator()
            let alphabet = Array(
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.+ é\0\"".unicodeScalars)
            let seen = Snapshot(xmax: 900, running: [880, 899])
            let good = FeedCursor(
                epoch: Self.epoch, seen: seen, window: Snapshot(xmax: 950, running: [899, 930]), id: 12345)
            for round in 0..<20_000 {
                var scalars = Array(good.text.unicodeScalars)
                if round % 2 == 0 {
                    scalars = (0..<Int.random(in: 0...60, using: &generator)).map { _ in
                        alphabet.randomElement(using: &generator) ?? "A"
                    }
                } else {
                    for _ in 0..<Int.random(in: 1...3, using: &generator) {
                        let place = Int.random(in: 0..<scalars.count, using: &generator)
                        scalars[place] = alphabet.randomElement(using: &generator) ?? "A"
                    }
                }
                let text = String(String.UnicodeScalarView(scalars))
                // What is read says itself again: there is one text for each cursor.
                if let read = FeedCursor(text) {
                    #expect(read.text == text || read.id == FeedCursor(read.text)?.id)
                    #expect(FeedCursor(read.text) == read)
                }
            }
            for text in [
                "", ".", "A", "..", ".1", "AQ.", String(repeating: "A", count: 100_000) + ".1", good.text + ".1",
            ] {
                #expect(FeedCursor(text) == nil, "\(text.prefix(20))")
            }
            #expect(FeedCursor(good.text.replacing(".", with: ".+")) == nil)
            #expect(FeedCursor(good.text.replacing(".", with: ".-")) == nil)
        }

        @Test func sizesAndCost() {
            let epoch = Self.epoch
            func cursor(_ running: Int) -> (Snapshot, Snapshot) {
                let base: UInt64 = 80_000_000
                return (
                    Snapshot(xmax: base + 1000, running: (0..<UInt64(running)).map { base + 900 + $0 * 3 }),
                    Snapshot(xmax: base + 1040, running: (0..<UInt64(running)).map { base + 935 + $0 * 3 })
                )
            }
            for running in [0, 1, 32] {
                let (seen, window) = cursor(running)
                let text = FeedCursor(epoch: epoch, seen: seen, window: window, id: 123_456_789).text
                let start = ContinuousClock.now
                for _ in 0..<10_000 { _ = CursorWindow(epoch: epoch, seen: seen, window: window) }
                let perWindow = (ContinuousClock.now - start) / 10_000
                let prefix = CursorWindow(epoch: epoch, seen: seen, window: window)
                let again = ContinuousClock.now
                for id in 0..<Int64(10_000) { _ = prefix.cursorText(123_456_789 + id) }
                let perRow = (ContinuousClock.now - again) / 10_000
                print(
                    "cursor with \(running) running: \(text.utf8.count) bytes; \(perWindow) a window, \(perRow) a row")
                #expect(text.utf8.count < (running == 32 ? 160 : 50))
            }
        }

        @Test func snapshotsAreOrdered() {
            var generator = SystemRandomNumberGenerator()
            for _ in 0..<500 {
                let one = Self.random(after: nil, &generator)
                let other = Self.random(after: one, &generator)
                #expect(one.precedes(other))
                let lowest = one.running.first ?? one.xmax
                let isIncluded = (lowest - 2..<other.xmax + 3).allSatisfy { !other.sees($0) || one.sees($0) }
                #expect(other.precedes(one) == (isIncluded && other.xmax <= one.xmax))
                for number in lowest - 2..<one.xmax + 3 {
                    #expect(one.sees(number) == (number < one.xmax && !one.running.contains(number)))
                }
            }
        }

        @Test func marksAreSpacedKeptAndThinned() {
            var ring = Watermarks()
            var now = ContinuousClock.now
            ring.connectionOpened(at: Snapshot(xmax: 10, running: []), isSameHistory: true, now: now)
            #expect(ring.windowEnded(at: Snapshot(xmax: 11, running: []), oldest: 0, now: now) == nil)
            ring.handedOn()
            // Too soon after the start; the next window's end makes up for it.
            #expect(ring.windowEnded(at: Snapshot(xmax: 12, running: []), oldest: 0, now: now) == nil)
            now += .milliseconds(25)
            #expect(ring.windowEnded(at: Snapshot(xmax: 13, running: []), oldest: 0, now: now) == 1)
            now += .milliseconds(25)
            #expect(ring.windowEnded(at: Snapshot(xmax: 14, running: []), oldest: 0, now: now) == nil)
            #expect(ring.snapshot(at: 1)?.xmax == 13)
            #expect(ring.snapshot(at: 0)?.xmax == 10)
            for step in 0..<40_000 {
                now += .milliseconds(20)
                ring.handedOn()
                _ = ring.windowEnded(at: Snapshot(xmax: 20 + UInt64(step), running: []), oldest: 1, now: now)
            }
            #expect(ring.count <= 16_385)
            // Thinned or not, a mark leads to a snapshot no later than its own.
            for mark in stride(from: 1, through: ring.latest, by: 37) {
                #expect((ring.snapshot(at: mark)?.xmax ?? .max) <= UInt64(mark) + 18)
            }
            ring.handedOn()
            now += .seconds(20)
            _ = ring.windowEnded(at: Snapshot(xmax: 50_000, running: []), oldest: ring.latest, now: now)
            #expect(ring.count <= 2)
            #expect(ring.snapshot(at: 1) == nil)
        }

        @Test func marksBeyondTheStoredCursorAreTakenBack() {
            var ring = Watermarks()
            var now = ContinuousClock.now
            ring.connectionOpened(at: Snapshot(xmax: 10, running: []), isSameHistory: true, now: now)
            for xmax in [20, 30, 40] as [UInt64] {
                now += .milliseconds(30)
                ring.handedOn()
                _ = ring.windowEnded(at: Snapshot(xmax: xmax, running: [xmax - 1]), oldest: 0, now: now)
            }
            let stored = Snapshot(xmax: 30, running: [29])
            ring.connectionOpened(at: stored, isSameHistory: true, now: now)
            #expect(ring.snapshot(at: 1)?.xmax == 20)
            #expect(ring.snapshot(at: 2)?.xmax == 30)
            #expect(ring.snapshot(at: 3) == stored)
            ring.connectionOpened(at: Snapshot(xmax: 5, running: []), isSameHistory: false, now: now)
            // Of another history nothing is known from before: all go on where it begins.
            #expect((0...3).map { ring.snapshot(at: $0)?.xmax } == [5, 5, 5, 5])
        }
    }
}
