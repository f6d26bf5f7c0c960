/// What a socket says first.
struct Opening {
    var frames: [[UInt8]] = []
    /// How many messages have to come before it has joined.
    var answers = 0
}
