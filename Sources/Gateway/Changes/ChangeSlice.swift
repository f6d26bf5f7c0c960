/// Limits the time that a loop spends on row changes in one turn: however much a transaction brings at once, sockets
/// are read and broadcasts sent in between.
///
/// Pure; time is passed in.
package struct ChangeSlice {
    /// Nanoseconds. With ten readers of everything, this covers the changes of about 130 rows, which still go out in
    /// one write per reader.
    package static let longest: UInt64 = 2_000_000

    /// Nanoseconds for changes that one member missed. They are sent in writes of their own, so a longer slice gains
    /// nothing, and clients that keep reconnecting would take everyone's time.
    package static let longestOfRecovery: UInt64 = 300_000

    private var beginning: UInt64?

    package init() {}

    /// Asked before each change. The first call in a turn starts the slice, so every turn makes progress.
    ///
    /// - Parameters:
    ///   - now: nanoseconds on a monotonic clock.
    ///   - ofRecovery: whether the change is one that a member missed.
    package mutating func isOver(at now: UInt64, ofRecovery: Bool) -> Bool {
        guard let beginning else {
            beginning = now
            return false
        }
        return now >= beginning + (ofRecovery ? Self.longestOfRecovery : Self.longest)
    }

    /// Ends the slice; the next call starts one for another turn.
    package mutating func turnEnds() { beginning = nil }
}
