import Cluster
import Testing

/// How many entries the log is to keep, by their sizes.
@Suite struct LogLengthTests {
    private func place(_ offset: Int, epoch: UInt64 = 1) -> LogPlace { LogPlace(epoch: epoch, offset: Int64(offset)) }

    @Test func smallEntriesAreBoundedByTheirNumber() {
        var length = LogLength(mostBytes: 64 << 20)
        for offset in 0..<100_000 { length.countEntry(150, at: place(offset)) }
        #expect(length.entries == LogLength.mostEntries)
    }

    @Test func largeEntriesAreBoundedByTheirBytes() {
        var length = LogLength(mostBytes: 64 << 20)
        for offset in 0..<1_000 { length.countEntry(1 << 20, at: place(offset)) }
        #expect((60...64).contains(length.entries))
        // What is small again is kept again.
        for offset in 1_000..<70_000 { length.countEntry(150, at: place(offset)) }
        #expect(length.entries > 59_000)
        // And a burst counts at once, however many were small before.
        for offset in 70_000..<70_070 { length.countEntry(1 << 20, at: place(offset)) }
        #expect((60...64).contains(length.entries))
    }

    @Test func theLastOnesAreKeptHoweverLargeTheyAre() {
        var length = LogLength(mostBytes: 1 << 20)
        for offset in 0..<100 { length.countEntry(4 << 20, at: place(offset)) }
        #expect(length.entries == LogLength.leastEntries)
    }

    @Test func whatIsReadAgainCountsOnce() {
        var length = LogLength(mostBytes: 1 << 20)
        for _ in 0..<10 { for offset in 0..<100 { length.countEntry(5_000, at: place(offset)) } }
        #expect(length.entries == LogLength.mostEntries)
        for offset in 0..<200 { length.countEntry(5_000, at: place(offset, epoch: 2)) }
        #expect((200...210).contains(length.entries))
    }
}
