import Gateway
import Testing

/// Which connections end when descriptors run short.
@Suite struct DisplacementTests {
    private func address(_ number: Int) throws -> PeerAddress {
        PeerAddress(try #require(IPAddress("192.0.2.\(number)")))
    }

    /// - Parameter number: of the address; zero: a proxy's, for nobody.
    private func candidates(_ list: [(number: Int, isIdle: Bool)]) throws -> [Displacement.Candidate] {
        try list.enumerated().map { place, one in
            Displacement.Candidate(
                place: place, source: one.number == 0 ? nil : try address(one.number), isIdle: one.isIdle,
                since: Int32(place))
        }
    }

    @Test func whoHasTheMostMakesRoomTheEldestIdleFirst() throws {
        let list = try candidates([(1, true), (2, false), (2, true), (2, true), (0, true)])
        #expect(Displacement.choose(among: list, for: try address(3)) == [2])
        #expect(Displacement.choose(among: list, for: try address(1)) == [2])
        #expect(Displacement.choose(among: list, for: nil) == [2])
    }

    @Test func whoHasManyEndsSeveralAtOnce() throws {
        let list = try candidates([(1, true)] + Array(repeating: (2, true), count: 64))
        #expect(Displacement.choose(among: list, for: try address(1)) == [1, 2, 3, 4])
    }

    /// A request ends only for somebody who has fewer, and one at a time.
    @Test func requestsEndWhereNothingIsIdle() throws {
        let list = try candidates([(1, false)] + Array(repeating: (2, false), count: 64))
        #expect(Displacement.choose(among: list, for: try address(1)) == [1])
        #expect(Displacement.choose(among: list, for: try address(3)) == [1])
        #expect(Displacement.choose(among: list, for: try address(2)) == [])
    }

    @Test func amongEqualsTheIdleOnesGo() throws {
        let list = try candidates([(1, false), (2, false), (3, true), (0, true)])
        #expect(Displacement.choose(among: list, for: try address(1)) == [2])
        #expect(Displacement.choose(among: list, for: nil) == [2])
        let busy = try candidates([(1, false), (2, false), (0, false)])
        #expect(Displacement.choose(among: busy, for: try address(3)) == [])
        #expect(Displacement.choose(among: [], for: try address(3)) == [])
    }

    /// One who opens without end takes its own places, whatever it does with them.
    @Test(arguments: [true, false]) func nobodyIsKeptOut(isIdle: Bool) throws {
        var present = try candidates(Array(repeating: (1, false), count: 3))
        let (room, flood) = (20, try address(2))
        for second in 0..<1000 {
            if present.count >= room {
                let chosen = Displacement.choose(among: present, for: flood)
                if chosen.isEmpty { continue }
                present = present.filter { !chosen.contains($0.place) }
            }
            present.append(.init(place: 100 + second, source: flood, isIdle: isIdle, since: Int32(second)))
        }
        #expect(present.count { $0.source != flood } == 3)
        let chosen = Displacement.choose(among: present, for: try address(3))
        #expect(!chosen.isEmpty && chosen.allSatisfy { $0 >= 100 })
    }

    @Test func theNumberOfADescriptorTellsHowManyAreLeft() {
        let room = DescriptorRoom(limit: 1024)
        #expect(!room.isShort(at: 900) && room.isShort(at: 928) && !room.isUsedUp(at: 928) && room.isUsedUp(at: 960))
        #expect(!DescriptorRoom(limit: .max).isShort(at: 1_000_000))
        #expect(!DescriptorRoom(limit: 100).isShort(at: 40), "of few, half is for clients")
    }
}
