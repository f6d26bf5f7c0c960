/// CPU time and memory of the watched processes at one moment.
struct Usage {
    let processes: [(name: String, usage: WatchedProcess.Usage)]
    let moment: UInt64

    /// Throws when one of them is not there.
    init(_ processes: [WatchedProcess]) throws {
        self.processes = try processes.map { ($0.name, try $0.usage()) }
        moment = Clock.now
    }

    /// Leaves out those that have ended meanwhile.
    init(living processes: [WatchedProcess]) {
        self.processes = processes.compactMap { process in process.usageIfAlive.map { (process.name, $0) } }
        moment = Clock.now
    }

    func of(_ name: String) -> WatchedProcess.Usage? { processes.first { $0.name == name }?.usage }

    func seconds(since start: Usage) -> Double { Double(moment - start.moment) / 1e9 }

    /// Microseconds of CPU that a process has used since; nil when it was not there all the time.
    func cpu(of name: String, since start: Usage) -> Double? {
        guard let now = of(name), let then = start.of(name), now.cpuMicroseconds >= then.cpuMicroseconds else {
            return nil
        }
        return now.cpuMicroseconds - then.cpuMicroseconds
    }

    /// Kilobytes that a process has gained since.
    func growth(of name: String, since start: Usage) -> Double? {
        guard let now = of(name), let then = start.of(name) else { return nil }
        return now.residentKilobytes - then.residentKilobytes
    }
}
