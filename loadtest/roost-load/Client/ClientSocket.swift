/// One connection of the fleet.
struct ClientSocket {
    enum Phase {
        case connecting, upgrading, joining, ready, closed
    }
    let descriptor: Int32
    var phase = Phase.connecting
    /// The start of a frame whose end has not come yet.
    var partial: [UInt8] = []
    /// Of the messages that a join is answered with, how many are outstanding.
    var answersMissing: Int
}
