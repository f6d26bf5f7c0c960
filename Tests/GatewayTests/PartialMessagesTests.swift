import Gateway
import Hub
import Testing

/// Messages that come in pieces: how they are put together, and what all of them may hold.
@Suite struct PartialMessagesTests {
    private static let cap = 100_000
    private let unfinished = UnfinishedBytes(cap: cap)
    private var partial: PartialMessages

    init() { partial = PartialMessages(unfinished) }

    private mutating func append(_ bytes: [UInt8], of slot: Slot, second: Int32 = 0) -> (count: Int, fits: Bool) {
        bytes.withUnsafeBytes { partial.append($0, of: slot, second: second) }
    }

    private mutating func append(_ count: Int, of slot: Slot, second: Int32 = 0) -> (count: Int, fits: Bool) {
        append([UInt8](repeating: 7, count: count), of: slot, second: second)
    }

    @Test mutating func piecesAreJoinedForEachSocket() {
        #expect(append([1, 2], of: 1).count == 2)
        #expect(append([9], of: 2).count == 1)
        #expect(append([3], of: 1).count == 3)
        #expect(partial.has(1) && !partial.has(3))
        #expect(partial.take(1) == [1, 2, 3])
        #expect(!partial.has(1) && partial.take(1) == [])
        #expect(partial.take(2) == [9])
    }

    @Test mutating func whatIsHeldCountsUntilItIsTaken() {
        _ = append(300, of: 1)
        _ = append(200, of: 1)
        _ = append(50, of: 2)
        #expect(unfinished.count == 550)
        _ = partial.take(1)
        #expect(unfinished.count == 50)
        _ = partial.take(1)
        _ = partial.take(2)
        #expect(unfinished.count == 0)
    }

    @Test mutating func overTheCapOnlySmallMessagesFit() {
        #expect(append(Self.cap, of: 1).fits)
        #expect(append(UnfinishedBytes.free, of: 2).fits, "whoever fills the cap keeps nobody from what is small")
        #expect(!append(1, of: 2).fits)
        #expect(!append(1, of: 1).fits)
        _ = partial.take(1)
        #expect(append(1, of: 2).fits)
    }

    @Test mutating func theSlowEndOnlyWhereRoomIsTight() {
        let half = Self.cap / 2
        _ = append(half, of: 1, second: 10)
        #expect(partial.overdue(at: 1000, timeout: 30) == [], "there is room")
        _ = append(UnfinishedBytes.free, of: 2, second: 10)
        #expect(partial.overdue(at: 39, timeout: 30) == [])
        #expect(partial.overdue(at: 40, timeout: 30) == [1], "what is small may take as long as it likes")
    }

    /// A piece now and then must not keep a message alive for ever.
    @Test mutating func theTimeOfAMessageIsThatOfItsFirstPiece() {
        _ = append(Self.cap / 2, of: 1, second: 10)
        _ = append(1, of: 1, second: 39)
        #expect(partial.overdue(at: 40, timeout: 30) == [1])
        _ = partial.take(1)
        _ = append(Self.cap, of: 1, second: 41)
        #expect(partial.overdue(at: 70, timeout: 30) == [])
        #expect(partial.overdue(at: 71, timeout: 30) == [1])
    }
}
