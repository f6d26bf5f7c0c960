import Hub
import Wire

/// Frames sent to one audience one after the other in one turn. A busy channel's output is recorded once per socket,
/// instead of once per socket and frame.
///
/// While a run is open, its message is the last one pending for each of its sockets, and none of it is written. The run
/// is closed before anything else is queued behind it and before anything is written. Only then do the sockets' pending
/// bytes include what came after its first frame.
struct FrameRun {
    let message: Int32
    /// Retained, so that the hub's own array is copied when a member joins or leaves: the same storage means the same
    /// sockets.
    let audience: [Slot]
    let except: Slot?
    let kind: FrameKind
    /// Bytes after the first frame.
    var growth = 0

    /// Whether a frame to these sockets continues the run.
    func continues(_ other: [Slot], except: Slot?, _ kind: FrameKind) -> Bool {
        guard audience.count == other.count, self.except == except, self.kind == kind else { return false }
        return audience.withUnsafeBufferPointer { mine in
            other.withUnsafeBufferPointer { mine.baseAddress == $0.baseAddress }
        }
    }
}

/// Runs of frames for the same sockets; see `FrameRun`.
extension Delivery {
    /// Below this size, recording a frame for each socket costs no more than finding its run.
    private static let smallestAudience = 16
    /// Enough for the channels that are busy at the same time, and the protocol versions of each.
    private static let mostRuns = 8

    /// Appends the frame to the open run for the same sockets. False if there is none.
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
        // The run's own reference, so that its place is not reused while it is open.
        messages.retain(message, times: 1)
        runs.append(FrameRun(message: message, audience: audience, except: except, kind: kind))
    }

    mutating func closeRuns() {
        while let run = runs.popLast() { close(run) }
    }

    /// Closes the run at the end of a socket's list, before something else is queued there.
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
