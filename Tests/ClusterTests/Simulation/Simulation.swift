import Cluster
import HeapModule

/// Several hubs (reader, writer and table of peers of each) over a modelled Redis, on a clock of its own, under random
/// faults. A seed makes it the same each time.
final class Simulation {
    /// What is turned off, to see that the checks find it.
    enum Mutation {
        case none
        /// OPEN keeps the epoch that the data has.
        case noNewEpoch
        /// All entries have the same tag.
        case noTags
        /// Neither beats nor heads are heard of.
        case noBeats
        /// Writers begin with what is new.
        case noResend
        /// Gaps that sequences show are not told.
        case noSequences
    }

    struct Configuration {
        var seed: UInt64
        var hubs = 4
        var faults = 50
        var kinds = Fault.all
        var mutation = Mutation.none
        /// The last messages are dropped on their way to all, and nothing follows them.
        var endsWithDrop = false
        var mostEntries = 100_000
        var writer = LogWriter.Limits()
        var reader = LogReader.Limits()
    }

    /// SplitMix64.
    struct Generator: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state &+= 0x9e37_79b9_7f4a_7c15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
            return mixed ^ (mixed >> 31)
        }
    }

    private struct Event: Comparable {
        var time: Int64
        var order: Int
        var work: () -> Void
        static func < (left: Event, right: Event) -> Bool { (left.time, left.order) < (right.time, right.order) }
        static func == (left: Event, right: Event) -> Bool { left.order == right.order }
    }

    let configuration: Configuration
    var random: Generator
    /// Microseconds.
    private(set) var now: Int64 = 0
    private var events = Heap<Event>()
    private var order = 0

    var primary: SimulatedEngine
    /// A primary that nobody told yet that it is none any more.
    var former: SimulatedEngine?
    var hubs: [SimulatedHub] = []
    var retired: [SimulatedHub] = []
    /// When each message was accepted, by the boot that took it and its sequence, from 1.
    var accepted: [UInt64: [Int64]] = [:]
    var boots: UInt64 = 0
    /// Whether clients send anything.
    private(set) var isLoaded = true
    var faultsMade: [Fault: Int] = [:]

    init(_ configuration: Configuration) {
        self.configuration = configuration
        random = Generator(state: configuration.seed)
        primary = SimulatedEngine(replid: 1, mutation: configuration.mutation, mostEntries: configuration.mostEntries)
    }

    var milliseconds: Int64 { now / 1_000 }

    /// Runs `work` after so many microseconds; in the order of the calls where they fall together.
    func after(_ delay: Int64, _ work: @escaping () -> Void) {
        order += 1
        events.insert(Event(time: now + max(0, delay), order: order, work: work))
    }

    func random(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &random) }
    func chance(_ percent: Int64) -> Bool { random(1...100) <= percent }
    func latency() -> Int64 { chance(2) ? random(1_000...20_000) : random(40...300) }

    func addHub(name: String) {
        boots += 1
        guard let identity = HubIdentity(name: name, boot: boots) else { return }
        let hub = SimulatedHub(identity, self)
        hubs.append(hub)
        hub.start()
    }

    /// The engine that a hub connects to now.
    func address() -> SimulatedEngine { former != nil && chance(25) ? former ?? primary : primary }

    func run() {
        for index in 0..<configuration.hubs { addHub(name: "hub-\(index)") }
        advance(by: 2_000_000)
        for _ in 0..<configuration.faults {
            let kind = configuration.kinds[Int(random(0...Int64(configuration.kinds.count - 1)))]
            faultsMade[kind, default: 0] += 1
            make(kind)
            advance(by: random(20_000...600_000))
        }
        heal()
        isLoaded = false
        if configuration.endsWithDrop {
            advance(by: 3_000_000)
            for hub in hubs { hub.subscription?.dropNext = 1 }
            hubs[0].perform { [self] in hubs[0].send(3) }
        }
        advance(by: 14_000_000)
    }

    private func advance(by duration: Int64) {
        let end = now + duration
        while let next = events.min, next.time <= end {
            _ = events.popMin()
            now = next.time
            next.work()
        }
        now = end
    }
}
