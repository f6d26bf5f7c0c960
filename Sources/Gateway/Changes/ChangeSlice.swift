/// How long a loop gives row changes in one of its turns: whatever a transaction brings at once, the sockets are read and
/// broadcasts sent in between.
///
/// Pure; time is passed in.
package struct ChangeSlice {
    /// Nanoseconds. Of ten readers of everything it is the change of about 130 rows, and what they are sent is still one
    /// write for each.
    package static let longest: UInt64 = 2_000_000

    private var end: UInt64?

    package init() {}

    /// To be asked before each change. The first time in a turn begins the slice, so every turn gets on.
    ///
    /// - Parameter now: nanoseconds on a clock that only goes forward.
    package mutating func isOver(at now: UInt64) -> Bool {
        guard let end else {
            end = now + Self.longest
            return false
        }
        return now >= end
    }

    /// The next time asks in another turn.
    package mutating func turnEnds() { end = nil }
}
