/// CPU time of the watched processes and of the tester at one moment.
struct Usage {
    private let processes: [(name: String, usage: WatchedProcess.Usage)]
    private let own: OwnUsage
    private let moment: UInt64

    init(_ processes: [WatchedProcess]) throws {
        self.processes = try processes.map { ($0.name, try $0.usage()) }
        own = .now
        moment = Clock.now
    }

    /// What was spent between two moments.
    struct Cost {
        var seconds: Double
        var processes: [(name: String, microseconds: Double)]
        var receiving: Double
        var tester: Double
    }

    func since(_ start: Usage) -> Cost {
        Cost(
            seconds: Double(moment - start.moment) / 1e9,
            processes: zip(processes, start.processes).map { now, then in
                (now.name, now.usage.cpuMicroseconds - then.usage.cpuMicroseconds)
            },
            receiving: own.receiving - start.own.receiving, tester: own.process - start.own.process)
    }

    /// Memory that each process gained, in KB.
    func growth(since start: Usage) -> [(name: String, kilobytes: Double)] {
        zip(processes, start.processes).map { now, then in
            (now.name, now.usage.residentKilobytes - then.usage.residentKilobytes)
        }
    }
}
