import ChangeFeed
import Hub
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Which cursors a database can go on from, without a database.
    @Suite struct EpochTests {
        private static func cursor(_ seen: UInt64, _ window: UInt64) -> FeedCursor {
            FeedCursor(
                epoch: DatabaseEpoch(value: 7), seen: Snapshot(xmax: seen, running: []),
                window: Snapshot(xmax: window, running: []), id: 5)
        }

        @Test func whatIsCertainIsKept() {
            let certain = Snapshot(xmax: 100, running: [90])
            #expect(KnownEpoch.sameRun.resumePoint(from: Self.cursor(300, 310)) == Self.cursor(300, 310))
            for isSameTimeline in [true, false] {
                let known = KnownEpoch.earlierRun(upTo: certain, sameTimeline: isSameTimeline)
                #expect(known.resumePoint(from: Self.cursor(80, 90)) == Self.cursor(80, 90))
            }
        }

        @Test func whatIsNotCertainComesAgain() {
            let certain = Snapshot(xmax: 100, running: [])
            let known = KnownEpoch.earlierRun(upTo: certain, sameTimeline: true)
            let epoch = DatabaseEpoch(value: 7)
            // Of a window that broke off nothing is certain but where it began.
            #expect(
                known.resumePoint(from: Self.cursor(95, 105)) == FeedCursor(epoch: epoch, at: Self.cursor(95, 95).seen))
            #expect(known.resumePoint(from: Self.cursor(101, 105)) == FeedCursor(epoch: epoch, at: certain))
            let promoted = KnownEpoch.earlierRun(upTo: certain, sameTimeline: false)
            #expect(promoted.resumePoint(from: Self.cursor(95, 105)) == nil)
        }

        /// A client of another hub that was cut off while it was brought what it missed: both its cursor and where that hub left its
        /// clients count. Epochs are drawn anew every few seconds, and one that is not known is refused.
        @Test func allCursorsOfAPointAreJudged() {
            let text = Self.cursor(80, 90).text
            #expect(RecoveryPoint.cursor(text).epochs.map(\.value) == [7])
            #expect(RecoveryPoint.earliest([.cursor(text), .snapshot("80:90:")]).epochs.map(\.value) == [7])
            #expect(RecoveryPoint.earliest([.restart, .mark(3), .cursor("none")]).epochs.isEmpty)
        }

        @Test func anEpochIsUsedWhenItIsSafe() {
            var renewal = EpochRenewal()
            let start = ContinuousClock.now
            renewal.connectionOpened(with: DatabaseEpoch(value: 1), at: start)
            #expect(!renewal.isDue(at: start) && renewal.isDue(at: start + EpochRenewal.interval))
            renewal.epochWritten(DatabaseEpoch(value: 2), at: start)
            #expect(!renewal.isDue(at: start + EpochRenewal.interval), "one is under way")
            #expect(renewal.walAdvanced(insertedAt: 100, flushedTo: 1000) == nil, "nothing is known to lie behind it")
            #expect(renewal.walAdvanced(insertedAt: 200, flushedTo: 99) == nil)
            #expect(renewal.known == [DatabaseEpoch(value: 1)])
            #expect(renewal.walAdvanced(insertedAt: 300, flushedTo: 100) == DatabaseEpoch(value: 2))
            #expect(renewal.known.map(\.value) == [1, 2])
            #expect(renewal.walAdvanced(insertedAt: 400, flushedTo: 400) == nil)
            // What a lost connection left behind may never have been committed.
            renewal.epochWritten(DatabaseEpoch(value: 3), at: start)
            renewal.connectionOpened(with: DatabaseEpoch(value: 4), at: start)
            #expect(renewal.walAdvanced(insertedAt: 500, flushedTo: 600) == nil)
            #expect(renewal.known.map(\.value) == [1, 2, 4])
        }
    }
}
