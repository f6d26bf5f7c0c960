import Synchronization

/// Whether a channel is over, for those who may not wait for the engine.
final class ChannelFlag: Sendable {
    private let value = Atomic(false)

    var isOver: Bool { value.load(ordering: .acquiring) }

    func raise() { value.store(true, ordering: .releasing) }
}
