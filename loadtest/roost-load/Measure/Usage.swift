import ArgumentParser
import Glibc

/// CPU time and memory of the watched processes at one moment.
struct Usage {
    let processes: [(name: String, usage: WatchedProcess.Usage)]
    let moment: UInt64

    /// Throws when one of them is not there.
    init(_ processes: [WatchedProcess]) throws {
        self.processes = try processes.map { ($0.name, try $0.usage()) }
        moment = MonotonicClock.now
    }

    /// Leaves out those that have ended meanwhile.
    init(living processes: [WatchedProcess]) {
        self.processes = processes.compactMap { process in process.usageIfAlive.map { (process.name, $0) } }
        moment = MonotonicClock.now
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

/// A process whose cost is measured, named for the report: `hub=4711`.
struct WatchedProcess: ExpressibleByArgument, Sendable {
    let name: String
    let id: Int32

    init?(argument: String) {
        let parts = argument.split(separator: "=")
        guard let last = parts.last, let id = Int32(last), parts.count <= 2 else { return nil }
        self.id = id
        name = parts.count == 2 ? String(parts[0]) : "hub"
    }

    struct Usage: Sendable {
        var cpuMicroseconds: Double
        var residentKilobytes: Double
    }

    func usage() throws -> Usage {
        guard let usage = usageIfAlive else { throw LoadFailure("There is no process \(id) (\(name)) to measure.") }
        return usage
    }

    var usageIfAlive: Usage? {
        // The process' own clock: exact to the nanosecond, and it keeps what ended threads have used.
        var clock = clockid_t()
        var time = timespec()
        guard clock_getcpuclockid(id, &clock) == 0, clock_gettime(clock, &time) == 0,
            let status = ProcFile.read("/proc/\(id)/status")
        else { return nil }
        return Usage(
            cpuMicroseconds: Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3,
            residentKilobytes: Self.resident(in: status))
    }

    private static func resident(in status: String) -> Double {
        for line in status.split(separator: "\n") where line.hasPrefix("VmRSS:") {
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            return words.count > 1 ? Double(words[1]) ?? 0 : 0
        }
        return 0
    }
}

/// What the load tester itself costs, in µs of CPU: a tester that costs more than the hub measures itself.
struct OwnUsage: Codable, Sendable {
    /// The calling thread, which is the one that receives.
    let receiving: Double
    let process: Double

    static var now: OwnUsage {
        OwnUsage(receiving: cpu(CLOCK_THREAD_CPUTIME_ID), process: cpu(CLOCK_PROCESS_CPUTIME_ID))
    }

    private static func cpu(_ clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
    }
}

/// The small text files of /proc.
enum ProcFile {
    /// Nil when the file is not there, which for a process means that it ended.
    static func read(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 8192)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
