import Hub
import Wire

/// Frames that one audience is sent one after the other, in one turn: what a busy channel says is noted once for each
/// socket, not once for each socket and frame.
///
/// As long as it is open, its message is the last that waits for each of its sockets, and nothing of it is written. It is
/// closed before anything else is put behind it and before anything is written, and only then do the sockets' pending
/// bytes count what came after its first frame.
struct FrameRun {
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

/// Frames for the same sockets, one after the other; see `FrameRun`.
extension Delivery {
    /// Below, to note a frame for each socket costs no more than to look for its run.
    private static let smallestAudience = 16
    /// Channels that are busy at the same time, and the protocol versions of one.
    private static let mostRuns = 8

    /// Puts the frame behind the last one for the same sockets. False where there is none that is open.
    mutating func continueRun(_ frame: Frame, _ audience: [Slot], except: Slot?, _ kind: FrameKind) -> Bool {
        for index in runs.indices where runs[index].continues(audience, except: except, kind) {
            guard messages.length(runs[index].message) + frame.bytes.count <= roomMark else { return false }
            messages.extend(runs[index].message, with: frame)
            runs[index].growth += frame.bytes.count
            return true
        }
        return false
    }

    mutating func beginRun(_ message: Int32, _ audience: [Slot], except: Slot?, _ kind: FrameKind) {
        guard audience.count >= Self.smallestAudience, messages.length(message) < roomMark else { return }
        if runs.count == Self.mostRuns { close(runs.removeFirst()) }
        // The run's own reference: its place must not fall to another message while it is open.
        messages.retain(message, times: 1)
        runs.append(FrameRun(message: message, audience: audience, except: except, kind: kind))
    }

    mutating func closeRuns() {
        while let run = runs.popLast() { close(run) }
    }

    /// Something is about to be put behind what waits for the socket.
    mutating func closeRun(endingAt slot: Slot) {
        guard let last = pending.last(slot), let index = runs.firstIndex(where: { $0.message == last }) else { return }
        close(runs.remove(at: index))
    }

    private mutating func close(_ run: FrameRun) {
        if run.growth > 0 {
            for slot in run.audience where slot != run.except && pending.last(slot) == run.message {
                let bytes = pending.grow(slot, by: run.growth)
                let socket = sockets[Int(slot)]
                if bytes > lagMark, !socket.isBehind || run.kind == .change && !socket.isLagging { fellBehind(slot) }
            }
        }
        messages.release(run.message)
    }
}
