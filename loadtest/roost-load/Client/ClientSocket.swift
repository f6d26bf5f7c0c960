/// One connection of the fleet.
struct ClientSocket {
    enum Phase {
        case closed, connecting, securing, upgrading, joining, ready
        /// Has said goodbye and waits for the other side to close.
        case leaving
    }
    var descriptor: Int32 = -1
    var phase = Phase.closed
    var session: SecureSession?
    /// The start of a frame whose end has not come yet.
    var partial: [UInt8] = []
    /// What the other side has not taken yet.
    var unsent: [UInt8] = []
    /// Of the messages that joins are answered with, how many are outstanding.
    var answersMissing = 0
    /// Does not read.
    var isStalled = false
    /// When it was dialled, by `Clock`.
    var dialled: UInt64 = 0
}
