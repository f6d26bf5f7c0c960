import Cluster
import Testing

/// The log under random faults: nothing is lost in silence, nothing is applied twice or in another order than elsewhere.
@Suite struct SimulationTests {
    /// Rings, logs and buffers that are much too short, so that much is lost and must be told.
    static func tighten(_ configuration: inout Simulation.Configuration) {
        configuration.mostEntries = 60
        configuration.writer.ringTime = 800
        configuration.writer.ringBytes = 30_000
        configuration.writer.resendBytes = 4_000
        configuration.writer.batchBytes = 20_000
        configuration.reader.aheadBytes = 5_000
        configuration.reader.fetchCount = 7
        configuration.reader.heldBytes = 2_000
    }

    static func run(
        _ seeds: ClosedRange<UInt64>, _ change: (inout Simulation.Configuration) -> Void = { _ in }
    ) -> SimulationReport {
        seeds.reduce(into: SimulationReport()) { total, seed in
            var configuration = Simulation.Configuration(seed: seed)
            configuration.hubs = 3 + Int(seed % 3)
            change(&configuration)
            let simulation = Simulation(configuration)
            simulation.run()
            let report = SimulationReport(simulation)
            total += report
        }
    }

    private func expectSound(_ report: SimulationReport, _ name: String) {
        print("\(name): \(report.figures)")
        #expect(report.silent == 0)
        #expect(report.disordered == 0)
        #expect(report.problems.isEmpty, "\(report.problems.prefix(5))")
        // A run that met nothing shows nothing.
        #expect(report.applied > report.faults * 20)
        #expect(report.delivered > 0)
        #expect(report.compared > 0)
    }

    /// All faults there are, with the limits of a real hub.
    @Test func nothingIsLostInSilence() {
        let report = Self.run(1...24)
        expectSound(report, "all faults")
        #expect(report.healed > 1_000)
        #expect(report.toldByDeath > 0)
    }

    /// No hub dies, and rings and logs are long enough: all is healed, and nothing needs to be told.
    @Test func allIsHealed() {
        let report = Self.run(101...110) {
            $0.kinds = Fault.healable
            $0.writer.ringTime = 120_000
        }
        expectSound(report, "healable")
        #expect(report.applied == report.owed)
        #expect(report.toldBySequence == 0)
    }

    /// Everything is too short: what is lost is told, of exactly those messages that are lost.
    @Test func whatCannotBeHealedIsTold() {
        let report = Self.run(201...208, Self.tighten)
        expectSound(report, "too short")
        #expect(report.toldBySequence > 100)
        #expect(report.gapsUnheardOf > 0)
    }

    /// Turning off one rule at a time is found: a check that finds nothing then would show nothing now.
    @Test(arguments: [Simulation.Mutation.noNewEpoch, .noTags, .noBeats, .noResend, .noSequences])
    func eachRuleIsNeeded(_ rule: Simulation.Mutation) {
        func run(_ mutation: Simulation.Mutation) -> SimulationReport {
            Self.run(301...308) { configuration in
                configuration.mutation = mutation
                Self.favour(rule, &configuration)
            }
        }
        let report = run(rule)
        print("\(rule): \(report.figures)")
        switch rule {
        case .noResend: #expect(report.toldBySequence > 0)
        default: #expect(report.silent + report.disordered + report.problems.count > 0)
        }
        // The same faults do no harm with the rule.
        let sound = run(.none)
        #expect(sound.silent + sound.disordered + sound.problems.count == 0)
        if rule == .noResend { #expect(sound.toldBySequence == 0) }
    }

    /// The faults that this rule is against.
    private static func favour(_ rule: Simulation.Mutation, _ configuration: inout Simulation.Configuration) {
        switch rule {
        case .noSequences: tighten(&configuration)
        case .noResend:
            configuration.kinds = Fault.healable
            configuration.writer.ringTime = 120_000
        case .noTags:
            // What tags alone find: an engine that lost writes and went on in the same epoch.
            configuration.kinds = [.tailLostUnnoticed, .silentDrop]
        case .noBeats:
            // What nothing follows is found by beats alone.
            configuration.kinds = [.silentDrop, .subscriptionKilled]
            configuration.endsWithDrop = true
        case .noNewEpoch:
            configuration.kinds = [
                .failoverWithLostTail, .restartWithCutTail, .splitBrain, .hubCutOffWhileEngineEmpties, .hubFreezes,
            ]
        case .none: break
        }
    }
}
