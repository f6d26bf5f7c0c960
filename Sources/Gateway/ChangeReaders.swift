import Synchronization

/// How many sockets read row changes, and how many of these lag behind; all loops' together, because the feed waits for
/// the slowest loop.
final class ChangeReaders: Sendable {
    private let all = Atomic<Int>(0)
    private let lagging = Atomic<Int>(0)

    func joined() { all.add(1, ordering: .relaxed) }
    func left() { all.subtract(1, ordering: .relaxed) }
    func fellBehind() { lagging.add(1, ordering: .relaxed) }
    func caughtUp() { lagging.subtract(1, ordering: .relaxed) }

    /// To wait for them costs nobody but themselves.
    var mostLag: Bool { lagging.load(ordering: .relaxed) * 2 >= all.load(ordering: .relaxed) }
}
