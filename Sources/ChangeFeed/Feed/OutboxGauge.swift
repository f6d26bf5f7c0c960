import Logging
import Postgres
import Synchronization

/// The size and age of the outbox.
package struct OutboxFigures: Sendable, Equatable {
    /// Approximate.
    package let rows: Int
    package let bytes: Int
    /// Age of the oldest change kept.
    package let ageSeconds: Double
}

/// Measures approximately how much the outbox holds: queries Postgres only while the figures are wanted, and no more often
/// than is useful.
///
/// Safe from any thread.
final class OutboxGauge: Sendable {
    private struct State {
        var figures: OutboxFigures?
        var askedAt: ContinuousClock.Instant?
    }

    private let state = Mutex(State())
    private let logger: Logger
    private static let interval = Duration.seconds(15)

    init(logger: Logger) {
        self.logger = logger
    }

    /// The last figures; requests new ones in the background.
    func latestFigures(asking feed: FeedInbox) -> OutboxFigures? {
        let now = ContinuousClock.now
        let (figures, isDue) = state.withLock { state in
            let isDue = state.askedAt.map { now - $0 >= Self.interval } ?? true
            if isDue { state.askedAt = now }
            return (state.figures, isDue)
        }
        if isDue { feed.postIdleWork { [self] in measureOutbox($0) } }
        return figures
    }

    private func measureOutbox(_ context: FeedContext) {
        guard context.canQuery else { return }
        do {
            guard let row = try context.query(FeedSQL.outbox.text).first, row.count == 3,
                let rows = row[0].flatMap({ Int($0) }),
                let bytes = row[1].flatMap({ Int($0) }), let age = row[2].flatMap({ Double($0) })
            else { return }
            state.withLock { $0.figures = OutboxFigures(rows: rows, bytes: bytes, ageSeconds: age) }
        } catch {
            logger.debug("the outbox could not be measured: \(error)")
        }
    }
}
