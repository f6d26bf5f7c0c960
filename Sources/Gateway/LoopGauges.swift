import CWebSockets
import Synchronization

/// A loop's figures for the operator, published once a second so that reading them costs the loop nothing.
final class LoopGauges: Sendable {
    private let published = Mutex(LoopFigures())
    /// Up to date at any moment, because a drain ends by it.
    let connections = Atomic<Int>(0)
    /// When the figures were last published, in milliseconds of uv_hrtime; 0 before the loop runs.
    private let beatAt = Atomic<Int64>(0)

    /// The loop turns.
    func beats() { beatAt.store(Self.now, ordering: .relaxed) }

    /// Another number with each second in which the loop turned.
    var beat: Int { Int(beatAt.load(ordering: .relaxed)) }

    /// How long ago the loop last published; zero before it runs.
    var silence: Duration {
        let last = beatAt.load(ordering: .relaxed)
        return last == 0 ? .zero : .milliseconds(max(0, Self.now - last))
    }

    private static var now: Int64 { Int64(uv_hrtime() / 1_000_000) }

    func publish(_ loop: EventLoop) {
        let figures = LoopFigures(of: loop)
        published.withLock { $0 = figures }
        beats()
    }

    var figures: LoopFigures {
        var figures = published.withLock { $0 }
        figures.connections = connections.load(ordering: .relaxed)
        return figures
    }
}
