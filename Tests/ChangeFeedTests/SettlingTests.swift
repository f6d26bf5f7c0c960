import ChangeFeed
import Testing

@testable import PostgresFixtures

/// The place to go on from, where an observer may lose nothing.
@Suite struct SettlingTests {
    private func place(_ number: Int) throws -> StorablePlaces.Place {
        StorablePlaces.Place(cursor: try #require(Snapshot("\(number):\(number):")), covered: number)
    }

    @Test func isNeverBeyondWhatIsNotSettled() throws {
        var settling = StorablePlaces()
        #expect(settling.storablePlace(settled: 0) == nil)
        settling.resetPlaces(at: try place(10))
        #expect(settling.storablePlace(settled: 0)?.covered == 10)
        settling.addPlace(try place(11), taken: 0)
        settling.addPlace(try place(12), taken: 5)
        settling.addPlace(try place(13), taken: 5)
        settling.addPlace(try place(14), taken: 9)
        #expect(settling.storablePlace(settled: 4)?.covered == 11, "a window without anything to settle may be stored")
        #expect(settling.isWaiting)
        #expect(settling.storablePlace(settled: 5)?.covered == 13)
        #expect(settling.storablePlace(settled: 8)?.covered == 13)
        #expect(settling.storablePlace(settled: 9)?.covered == 14)
        #expect(!settling.isWaiting)
        settling.resetPlaces(at: nil)
        #expect(settling.storablePlace(settled: 9) == nil)
    }

    @Test func isBoundedWhereNothingIsSettled() throws {
        var settling = StorablePlaces()
        for number in 1...5000 { settling.addPlace(try place(number), taken: number) }
        #expect(settling.storablePlace(settled: 500)?.covered == 500)
        #expect(settling.storablePlace(settled: 4999)?.covered == 999, "the newest places are one")
        #expect(settling.storablePlace(settled: 5000)?.covered == 5000)
    }
}
