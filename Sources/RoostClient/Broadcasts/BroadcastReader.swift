import Synchronization

/// Makes typed broadcasts of what arrived. What cannot be read is counted: no client can end another's sequence by
/// sending it something odd.
final class BroadcastReader<Payload: Sendable>: Sendable {
    private struct Counts {
        var missed = 0
        var unreadable = 0
    }

    private let counts = Mutex(Counts())
    private let decode: @Sendable (IncomingBroadcast) throws(RoostError) -> Payload?

    /// - Parameter decode: nil for what is not for this sequence.
    init(_ decode: @escaping @Sendable (IncomingBroadcast) throws(RoostError) -> Payload?) { self.decode = decode }

    /// Nil where there is nothing to hand on yet.
    func read(_ delivery: Mailbox<IncomingBroadcast>.Delivery) -> Broadcast<Payload>? {
        switch delivery {
        case .missed(let count):
            counts.withLock { $0.missed += count }
            return nil
        case .element(let broadcast):
            do throws(RoostError) {
                guard let payload = try decode(broadcast) else { return nil }
                let before = counts.withLock { counts in
                    defer { counts = Counts() }
                    return counts
                }
                return Broadcast(
                    event: broadcast.event, payload: payload, meta: broadcast.meta, missedBefore: before.missed,
                    unreadableBefore: before.unreadable)
            } catch {
                counts.withLock { $0.unreadable += 1 }
                return nil
            }
        }
    }
}
