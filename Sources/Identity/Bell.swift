import Synchronization

/// Wakes the keeper of keys: by the clock, and when a token names a key that nobody knows.
///
/// Ringing is cheap and never waits, and a thousand rings before the keeper looks are one.
final class Bell: Sendable {
    let strokes: AsyncStream<Void>
    private let stroke: AsyncStream<Void>.Continuation
    private let wanted = Atomic<Bool>(false)

    init() {
        (strokes, stroke) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    func tick() { stroke.yield() }

    func ring() {
        if !wanted.exchange(true, ordering: .relaxed) { stroke.yield() }
    }

    /// Somebody rang and was not answered.
    var isWaiting: Bool { wanted.load(ordering: .relaxed) }

    func answer() { wanted.store(false, ordering: .relaxed) }
}
