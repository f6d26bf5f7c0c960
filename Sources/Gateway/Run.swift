import Hub

/// Frames that one audience is sent one after the other, in one turn: what a busy channel says is noted once for each
/// socket, not once for each socket and frame.
///
/// As long as it is open, its message is the last that waits for each of its sockets, and nothing of it is written. It is
/// closed before anything else is put behind it and before anything is written, and only then do the sockets' pending
/// bytes count what came after its first frame.
struct Run {
    let message: Int32
    /// Held, so that the hub's own array moves when somebody joins or leaves, and the same storage means the same sockets.
    let audience: [Slot]
    let except: Slot?
    let kind: FrameKind
    /// Bytes behind the first frame.
    var growth = 0

    /// Whether a frame to these sockets is one more of the run.
    func continues(_ other: [Slot], except: Slot?, _ kind: FrameKind) -> Bool {
        guard audience.count == other.count, self.except == except, self.kind == kind else { return false }
        return audience.withUnsafeBufferPointer { mine in
            other.withUnsafeBufferPointer { mine.baseAddress == $0.baseAddress }
        }
    }
}
