import Hub
import Testing

@testable import Push

/// Everything that can go wrong on the way, at random, and what must hold whatever happens.
struct SenderPropertyTests {
    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func eachHasOneOutcomeAndLanesKeepTheirOrder(_ seed: UInt64) throws {
        var storm = try Storm(seed: seed)
        for _ in 0..<1200 { try storm.step() }
        try storm.calm()

        let bench = storm.bench
        #expect(bench.outcomes.count == storm.added.count)
        #expect(Set(bench.outcomes.map(\.push.id)).count == storm.added.count)
        #expect(bench.flying == 0 && bench.sender.queue.count == 0 && bench.sender.queue.lanes.isEmpty)
        #expect(bench.sender.flights.isEmpty)
        // What happened at all, so that the rest means something.
        #expect(Set(bench.outcomes.map(\.outcome.name)).count >= 8)
        #expect(
            bench.sender.counts.goAways > 5 && bench.sender.counts.ambiguous > 5 && bench.sender.counts.retries > 50)

        for (id, times) in storm.taken.values.reduce(
            into: [PushID: Int](),
            { counts, ids in
                for id in ids { counts[id, default: 0] += 1 }
            }) where times > 1
        {
            #expect(storm.ambiguous.contains(id), "taken \(times) times, and it was known")
        }
        let delivered = Set(bench.outcomes.filter { $0.outcome == .delivered }.map(\.push.id))
        #expect(delivered.isSubset(of: Set(storm.taken.values.joined())))
        for (lane, ids) in storm.taken {
            let places = ids.map { storm.place[$0] ?? -1 }
            #expect(places == places.sorted(), "lane \(lane)")
        }
        #expect(storm.activitiesSentAfterDoubt == 0 && storm.crowdedLanes == 0 && storm.beyondLimit == 0)
        #expect(zip(storm.mints, storm.mints.dropFirst()).allSatisfy { $1 - $0 >= 20 * 60_000 })
    }
}
