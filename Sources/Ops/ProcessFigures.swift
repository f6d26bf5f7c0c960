import CMalloc
import Dispatch
import Glibc
import Synchronization

/// Figures of this process from the operating system, under the names that Prometheus' own libraries use.
package enum ProcessFigures {
    /// - Parameters:
    ///   - version: the build's version.
    ///   - revision: the build's commit; empty if unknown.
    package static func all(version: String, revision: String) -> [Figure] {
        var files = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
        return [
            Figure(
                "roost_build_info", .gauge, "The version that is running.", 1,
                label: "version=\"\(version)\"" + (revision.isEmpty ? "" : ",revision=\"\(revision)\"")),
            Figure("process_cpu_seconds_total", .counter, "CPU time used.", cpuSeconds),
            Figure("process_resident_memory_bytes", .gauge, "Memory in use.", residentBytes),
            Figure("process_open_fds", .gauge, "Open files; each socket is one.", openFiles),
            Figure("process_max_fds", .gauge, "Files that may be open.", Double(files.rlim_cur)),
            Figure("process_start_time_seconds", .gauge, "When the process started, in seconds since 1970.", startTime),
        ]
    }

    /// The CPU time used by all threads of the process.
    static var cpuSeconds: Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }

    private static var residentBytes: Int { statmBytes(1) }

    /// The resident memory that is neither file-backed nor shared.
    static var anonymousBytes: Int { statmBytes(1) - statmBytes(2) }

    /// proc(5): the second field of statm is the resident set in pages, the third its file-backed part.
    private static func statmBytes(_ field: Int) -> Int {
        let fields = readFile("/proc/self/statm").split(separator: " ")
        let pages = fields.count > field ? Int(fields[field]) ?? 0 : 0
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    private static var openFiles: Int {
        // Since Linux 6.2 the folder's size is the number of files; before, counting ten thousand takes 10 ms.
        var information = stat()
        if stat("/proc/self/fd", &information) == 0, information.st_size > 0 { return Int(information.st_size) }
        guard let folder = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // ".", ".." and the folder itself.
        return count - 3
    }

    private static let startTime: Double = {
        // proc(5): field 22 of stat, in ticks since boot; the name before it may contain spaces.
        let fields = readFile("/proc/self/stat").split(separator: ")").last?.split(separator: " ") ?? []
        let ticks = fields.count > 19 ? Double(fields[19]) ?? 0 : 0
        let boot = readFile("/proc/stat").split(separator: "\n").first { $0.hasPrefix("btime ") }
        let began = boot.flatMap { Double($0.dropFirst(6)) } ?? 0
        return began + ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }()

    private static func readFile(_ path: String) -> String {
        guard let file = fopen(path, "r") else { return "" }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}

/// Returns unused memory to the operating system.
///
/// glibc's malloc has an arena per thread and keeps the memory it had: one long-lived block keeps everything that lies
/// before it. After 300 presences of 60 KB in five channels this was more than half of the hub's memory, permanently.
/// `malloc_trim` releases whole pages of all arenas. It holds each arena's lock meanwhile, so it is called when there
/// is much to gain, and not in the middle of a burst that would need the memory again.
package final class MemoryReturn: Sendable {
    /// Seconds between two checks; memory is returned after the second check that finds it spare.
    private static let rhythm = 20
    private let rule = Mutex(SpareMemory())

    package init() {}

    package func startTimer() {
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .seconds(Self.rhythm)) { [self] in
            returnSpareMemory()
            startTimer()
        }
    }

    private func returnSpareMemory() {
        let due = rule.withLock { $0.isDue(spare: Self.spareBytes) }
        guard due else { return }
        malloc_trim(0)
        rule.withLock { $0.wasReturned(leaving: Self.spareBytes) }
    }

    /// Memory that malloc holds but has not handed out: the anonymous memory less the allocated bytes.
    private static var spareBytes: Int {
        let information = mallinfo2()
        return ProcessFigures.anonymousBytes - Int(information.uordblks) - Int(information.hblkhd)
    }
}

/// Decides when spare memory is worth returning.
package struct SpareMemory: Sendable {
    /// In bytes. A hub under load allocates and frees less than this all the time.
    private static let much = 16_777_216
    /// The memory that could not be returned last time, because it lies between blocks in use.
    private var floor = 0
    private var wasMuch = false

    package init() {}

    /// - Parameter spare: the bytes found by this check.
    package mutating func isDue(spare: Int) -> Bool {
        floor = min(floor, max(0, spare))
        let isMuch = spare - floor >= Self.much
        defer { wasMuch = isMuch }
        return isMuch && wasMuch
    }

    package mutating func wasReturned(leaving spare: Int) {
        floor = max(0, spare)
        wasMuch = false
    }
}
