import Cluster

/// What came of a simulation: figures, and what should not have been.
struct SimulationReport {
    private(set) var faults = 0
    private(set) var accepted = 0
    /// Messages that were owed to a hub that lived to the end.
    private(set) var owed = 0
    private(set) var applied = 0
    private(set) var healed = 0
    /// Owed messages that were told as missing by their sequences.
    private(set) var toldBySequence = 0
    /// Owed messages of a hub that died that were told by its death.
    private(set) var toldByDeath = 0
    /// Owed messages of hubs that were never heard of.
    private(set) var toldUnheardOf = 0
    private(set) var gapsUnheardOf = 0
    /// Owed messages of hubs that ended and of which nobody who lives had heard since the reader began.
    private(set) var unknowable = 0
    private(set) var silent = 0
    private(set) var deaths = 0
    private(set) var falseDeaths = 0
    private(set) var delivered = 0
    private(set) var compared = 0
    private(set) var disordered = 0
    private(set) var problems: [String] = []

    init() {}

    init(_ simulation: Simulation) {
        faults = simulation.faultsMade.values.reduce(0, +)
        accepted = simulation.accepted.values.reduce(0) { $0 + $1.count }
        for hub in simulation.hubs { check(hub, simulation) }
        for hub in simulation.hubs + simulation.retired {
            let record = hub.record
            problems += record.problems.map { "\(hub.identity): \($0)" }
            if record.misplaced > 0 {
                problems.append("\(hub.identity): \(record.misplaced) delivered in a wrong place")
            }
            if record.undecoded > 0 { problems.append("\(hub.identity): \(record.undecoded) not understood") }
            healed += record.healed
            deaths += record.deaths
            falseDeaths += record.falseDeaths
            delivered += record.delivered
            compared += record.compared
        }
        // One that was killed did not live to learn that the log lost what it had read.
        let hubs = simulation.hubs
        for left in hubs.indices {
            for right in hubs.indices where left < right { compareOrder(hubs[left], hubs[right], simulation) }
        }
    }

    private mutating func check(_ hub: SimulatedHub, _ simulation: Simulation) {
        guard let since = hub.record.since else { return problems.append("\(hub.identity) never opened the log") }
        var applied: [UInt64: Set<UInt64>] = [:]
        for message in hub.record.applied { applied[message.boot, default: []].insert(message.sequence) }
        for (boot, times) in simulation.accepted.sorted(by: { $0.key < $1.key }) where boot != hub.identity.boot {
            let have = applied[boot] ?? []
            let missing = hub.record.missing[boot] ?? []
            let deaths = hub.record.gaps.filter { $0.gap.hub?.boot == boot && $0.gap.missing == nil }.map(\.at)
            for (index, time) in times.enumerated() where time >= since {
                let sequence = UInt64(index) + 1
                owed += 1
                if have.contains(sequence) {
                    self.applied += 1
                } else if missing.contains(where: { $0.contains(sequence) }) {
                    toldBySequence += 1
                } else if deaths.contains(where: { $0 >= time }) {
                    toldByDeath += 1
                } else if have.isEmpty, missing.isEmpty,
                    hub.record.gaps.contains(where: { $0.gap.hub == nil && $0.at >= time })
                {
                    toldUnheardOf += 1
                } else if !simulation.isHeardOf(boot, since: since - 1_000_000) {
                    unknowable += 1
                } else {
                    silent += 1
                    if silent <= 3 { problems.append("\(hub.identity) lacks \(boot)/\(sequence), accepted at \(time)") }
                }
            }
        }
        gapsUnheardOf += hub.record.gaps.filter { $0.gap.hub == nil }.count
    }

    /// What two hubs both applied and were both owed, both applied in the same order, except what they told as forked.
    private mutating func compareOrder(_ left: SimulatedHub, _ right: SimulatedHub, _ simulation: Simulation) {
        struct Key: Hashable {
            var boot: UInt64
            var sequence: UInt64
        }
        guard let first = left.record.since, let second = right.record.since else { return }
        let since = max(first, second)
        func isOwed(_ message: HubRecord.Applied) -> Bool {
            simulation.accepted[message.boot].map { $0[Int(message.sequence) - 1] >= since } ?? false
        }
        var positions: [Key: Int] = [:]
        for (index, message) in left.record.applied.enumerated() where !message.isForked && isOwed(message) {
            positions[Key(boot: message.boot, sequence: message.sequence)] = index
        }
        var last = -1
        for message in right.record.applied where !message.isForked {
            guard let position = positions[Key(boot: message.boot, sequence: message.sequence)] else { continue }
            if position < last { disordered += 1 }
            last = max(last, position)
        }
    }

    static func += (total: inout SimulationReport, run: SimulationReport) {
        total.faults += run.faults
        total.accepted += run.accepted
        total.owed += run.owed
        total.applied += run.applied
        total.healed += run.healed
        total.toldBySequence += run.toldBySequence
        total.toldByDeath += run.toldByDeath
        total.toldUnheardOf += run.toldUnheardOf
        total.gapsUnheardOf += run.gapsUnheardOf
        total.unknowable += run.unknowable
        total.silent += run.silent
        total.deaths += run.deaths
        total.falseDeaths += run.falseDeaths
        total.delivered += run.delivered
        total.compared += run.compared
        total.disordered += run.disordered
        total.problems += run.problems
    }

    var figures: String {
        """
        \(faults) faults; \(accepted) accepted, \(owed) owed to who lived: \(applied) applied (\(healed) healed), \
        told \(toldBySequence) by sequence, \(toldByDeath) by death, \(toldUnheardOf) of hubs never heard of \
        (\(gapsUnheardOf) such gaps), unknowable \(unknowable), silent \(silent), disordered \(disordered); \
        deaths \(deaths), false \(falseDeaths); directs \(delivered), digests \(compared)
        """
    }
}
