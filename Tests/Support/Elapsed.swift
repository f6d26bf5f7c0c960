import Foundation

/// A time that runs from its making on. What the machine took from everybody does not count: the time in which something had to
/// wait for a core while others had them. Alone on the machine there is next to none of it.
///
/// Tests/EndToEnd/support/bounds.py has the same for the tests in Python.
package struct Elapsed {
    private let since = ContinuousClock.now
    private let waitedBefore = Self.waited()

    package init() {}

    package var time: Duration { ContinuousClock.now - since }

    /// Whether no more than so long has gone by.
    ///
    /// Of the waits for a core four times as much counts, and five seconds: beside others everything runs at a fifth of its
    /// pace at worst, and a process may stand still for some seconds.
    package func isAtMost(_ limit: Duration) -> Bool {
        let took = time
        guard took > limit else { return true }
        // The kernel's figure is the average over the cores.
        let waited = (Self.waited() - waitedBefore) * ProcessInfo.processInfo.activeProcessorCount
        return took - min(waited, limit * 4 + .seconds(5)) <= limit
    }

    /// Linux' pressure stall information, from the start of the machine on; nothing where the kernel does not tell.
    private static func waited() -> Duration {
        guard let file = fopen("/proc/pressure/cpu", "r") else { return .zero }
        defer { fclose(file) }
        // The first line's: some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS
        var line = [UInt8](repeating: 0, count: 200)
        let count = fread(&line, 1, line.count, file)
        let first = String(decoding: line.prefix(count), as: UTF8.self).prefix { $0 != "\n" }
        guard let total = first.split(separator: "=").last.flatMap({ Int64($0) }) else { return .zero }
        return .microseconds(total)
    }
}
