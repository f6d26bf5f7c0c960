/// What went over one socket, for the line that tells of its end: 48 bytes beside every connection, and two additions for
/// every write.
struct SocketAccount {
    /// Nil where the peer was gone before it was asked, or a trusted proxy did not name it.
    var peer: IPAddress?
    /// Seconds on the loop's clock.
    var openedAt: Int32 = 0
    /// Messages, and frames of the protocol; they begin anew at four billion.
    var messagesIn: UInt32 = 0
    var messagesOut: UInt32 = 0
    /// Of messages in, of frames with their heads out.
    var bytesIn = 0
    var bytesOut = 0

    init() {}

    init(peer: IPAddress?, second: Int32) {
        self.peer = peer
        openedAt = second
    }
}
