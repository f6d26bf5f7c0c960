import Synchronization

/// Answers from any thread whether a loop may have a channel, so that a message wakes only the loops that may have
/// members for it.
///
/// A counting Bloom filter with one hash. It may say yes for an absent channel, but never no for a present one: a
/// channel is added before its first member's join is answered, and before its kept messages are read for that member.
/// So a member missing here either reads the message from the history, or had not joined when it was sent.
package final class ChannelFilter: Sendable {
    /// Channels that share a place by chance cost a wake-up. 128 KB for each loop.
    private static let places = 1 << 15

    // Safe to share: the pointer never changes, and it points to atomics that live as long as the filter.
    nonisolated(unsafe) private let counts = UnsafeMutablePointer<Atomic<UInt32>>.allocate(capacity: places)

    package init() {
        for place in 0..<Self.places { (counts + place).initialize(to: Atomic(0)) }
    }

    deinit {
        counts.deinitialize(count: Self.places)
        counts.deallocate()
    }

    private func count(of hash: Int) -> UnsafeMutablePointer<Atomic<UInt32>> { counts + (hash & (Self.places - 1)) }

    /// - Parameter hash: of the topic (`ChannelKey.hash`).
    func insert(_ hash: Int) { count(of: hash).pointee.add(1, ordering: .sequentiallyConsistent) }
    func remove(_ hash: Int) { count(of: hash).pointee.subtract(1, ordering: .sequentiallyConsistent) }

    package func mayHave(_ key: ChannelKey) -> Bool {
        count(of: ChannelKey.hash(ofTopic: key.topic)).pointee.load(ordering: .sequentiallyConsistent) > 0
    }

    /// Whether the relay could have any effect on the loop (`Hub.applyRelay`).
    package func mayConcern(_ relay: Relay) -> Bool {
        switch relay {
        case .broadcast(let key, _), .ordered(let key, _, isNumbered: true): mayHave(key)
        // These create the channel: its state must be there for members that join later.
        case .presence, .typing, .missing: true
        case .ordered, .lease, .appState, .keeping: false
        }
    }
}
