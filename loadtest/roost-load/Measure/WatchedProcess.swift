import ArgumentParser
import Glibc

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
