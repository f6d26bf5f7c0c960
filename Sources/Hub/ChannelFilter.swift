import Synchronization

/// Whether a loop may have a channel, asked from any thread: so that a message wakes only the loops that may have somebody for it.
///
/// A counting Bloom filter with one hash. It may say yes of a channel that is not there, and never no of one that is: a channel is in
/// it before its first member's join is answered, and before what is kept of it is read for that member. So whoever is not found here
/// either reads the message from the history, or had not joined when it was said.
package final class ChannelFilter: Sendable {
    /// Channels that share a place by chance cost a wake-up. 128 KB for each loop.
    private static let places = 1 << 15

    // Safe to share: the pointer never changes, and what it points to are atomics that are made with the filter and go with it.
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

    /// Whether the loop would do anything with it (`Hub.apply`).
    package func mayConcern(_ relay: Relay) -> Bool {
        switch relay {
        case .broadcast(let key, _), .ordered(let key, _, isNumbered: true): mayHave(key)
        // They make the channel: what is shown of it has to be there for whoever joins later.
        case .presence, .typing, .missing: true
        case .ordered, .lease, .appState, .keeping: false
        }
    }
}
