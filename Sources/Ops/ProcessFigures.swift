import CMalloc
import Dispatch
import Glibc
import Synchronization

/// What the operating system knows of this process, under the names that Prometheus' own libraries use.
package enum ProcessFigures {
    /// - Parameters:
    ///   - version: of the build.
    ///   - revision: the commit that it was made from; empty where that is not known.
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

    /// CPU time that all threads of the process have used.
    static var cpuSeconds: Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }

    private static var residentBytes: Int { statm(1) }

    /// The part of the resident set that belongs to no file and is not shared.
    static var anonymousBytes: Int { statm(1) - statm(2) }

    /// proc(5): the second number of statm is the resident set in pages, the third what of it belongs to files.
    private static func statm(_ field: Int) -> Int {
        let fields = text("/proc/self/statm").split(separator: " ")
        let pages = fields.count > field ? Int(fields[field]) ?? 0 : 0
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    private static var openFiles: Int {
        // From Linux 6.2 on the folder's size is their number; before, to count ten thousand takes 10 ms.
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
        // proc(5): field 22 of stat, in ticks since the machine began; the name before it may hold spaces.
        let fields = text("/proc/self/stat").split(separator: ")").last?.split(separator: " ") ?? []
        let ticks = fields.count > 19 ? Double(fields[19]) ?? 0 : 0
        let boot = text("/proc/stat").split(separator: "\n").first { $0.hasPrefix("btime ") }
        let began = boot.flatMap { Double($0.dropFirst(6)) } ?? 0
        return began + ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }()

    private static func text(_ path: String) -> String {
        guard let file = fopen(path, "r") else { return "" }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}

/// Gives memory back to the operating system that was needed once and is free now.
///
/// glibc's malloc has an arena for each thread and keeps what it had: a block that lives long is enough to keep all that
/// lies before it. After 300 presences of 60 KB in five channels that was more than half of the hub's memory, for ever.
/// `malloc_trim` takes the whole pages out of all arenas. It holds the lock of each meanwhile, so it is called where there is
/// much to be had, and not in the middle of a burst, which would take it again.
package final class MemoryReturn: Sendable {
    /// Seconds between two looks; memory is given back at the second that finds it spare.
    private static let rhythm = 20
    private let rule = Mutex(SpareMemory())

    package init() {}

    package func begin() {
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .seconds(Self.rhythm)) { [self] in
            look()
            begin()
        }
    }

    private func look() {
        let due = rule.withLock { $0.isDue(spare: Self.spareBytes) }
        guard due else { return }
        malloc_trim(0)
        rule.withLock { $0.wasReturned(leaving: Self.spareBytes) }
    }

    /// What is in memory for malloc, and not in use: what belongs to no file, less what was asked for.
    private static var spareBytes: Int {
        let information = mallinfo2()
        return ProcessFigures.anonymousBytes - Int(information.uordblks) - Int(information.hblkhd)
    }
}

/// When spare memory is worth being given back.
package struct SpareMemory: Sendable {
    /// In bytes. Less than this a hub under load takes and frees all the time.
    private static let much = 16_777_216
    /// What could not be given back the last time, because it lies between what is in use.
    private var floor = 0
    private var wasMuch = false

    package init() {}

    /// - Parameter spare: in bytes, at this look.
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
