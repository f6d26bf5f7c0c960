/// How long a loop gives row changes in one of its turns: whatever a transaction brings at once, the sockets are read and
/// broadcasts sent in between.
///
/// Pure; time is passed in.
package struct ChangeSlice {
    /// Nanoseconds. Of ten readers of everything it is the change of about 130 rows, and what they are sent is still one
    /// write for each.
    package static let longest: UInt64 = 2_000_000

    /// Nanoseconds for what one member missed. It is sent in writes of its own, so that nothing is gained by more at once, and
    /// whoever keeps coming back would take the time of everybody.
    package static let longestOfRecovery: UInt64 = 300_000

    private var beginning: UInt64?

    package init() {}

    /// To be asked before each change. The first time in a turn begins the slice, so every turn gets on.
    ///
    /// - Parameters:
    ///   - now: nanoseconds on a clock that only goes forward.
    ///   - ofRecovery: whether the change is one that a member missed.
    package mutating func isOver(at now: UInt64, ofRecovery: Bool) -> Bool {
        guard let beginning else {
            beginning = now
            return false
        }
        return now >= beginning + (ofRecovery ? Self.longestOfRecovery : Self.longest)
    }

    /// The next time asks in another turn.
    package mutating func turnEnds() { beginning = nil }
}
