import Hub
import Wire

/// What an operator who looks at a connection is told of frames.
extension Delivery {
    /// Only to be called while anybody looks: an audience is searched.
    mutating func trace(_ frame: Frame, to audience: [Slot], except: Slot?) {
        let watched = tracer.slots(except: except).filter(audience.contains)
        guard !watched.isEmpty else { return }
        let head = FrameHead(frame)
        for slot in watched { trace(frame, head, to: slot) }
    }

    mutating func trace(_ frame: Frame, _ head: FrameHead, to slot: Slot) {
        guard sockets[Int(slot)].isOpen else { return }
        tracer.note(slot, isOutgoing: true, head, bytes: frame.bytes.count, queue: pending.bytes(slot))
    }

    mutating func trace(received message: [UInt8], isBinary: Bool, from slot: Slot) {
        let head = FrameHead(message: message[...], isBinary: isBinary)
        tracer.note(slot, isOutgoing: false, head, bytes: message.count, queue: pending.bytes(slot))
    }
}
