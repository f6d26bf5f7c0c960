/// Somebody who types, to one channel of one loop.
package struct Typist {
    /// A user is one typist, with however many sockets; without a user, each socket is.
    package enum ID: Hashable, Sendable {
        case user(String)
        case member(MemberID)
        /// Sent over HTTP with a token that names nobody: what it says of itself tells it from others.
        case payload([UInt8])
    }

    enum State {
        /// The others know.
        case shown
        /// They are told when there is room, or when enough time has passed since they were told last.
        case waiting
        /// Kept for a moment to know what the others were told last, and when.
        case ended
    }

    var sign: TypingSign
    var state: State
    /// Ends by itself then, in monotonic milliseconds.
    var until: Int64
    var toldAt = Int64.min / 2
    /// When the others were told that it has ended. For as long as a start would have held, saying so again is not passed on.
    var endedAt = Int64.min / 2
    /// Who said so last, if it was on this loop, and which socket is not told because it knows.
    var member: MemberID?
    var origin: Slot?

    /// For how long it is known what the others were told of it last.
    func rememberedUntil(_ rules: TypingRules) -> Int64 { max(toldAt + rules.rhythm, endedAt + rules.silence) }
}
