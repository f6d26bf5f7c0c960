import ChangeFeed
import Gateway
import Ops
import Synchronization

/// The running rooms, for those who count what they do.
final class Rooms: Sendable {
    private let parts = Mutex<(Gateway, ChangeSubscriptions)?>(nil)

    func set(_ gateway: Gateway, _ subscriptions: ChangeSubscriptions) {
        parts.withLock { $0 = (gateway, subscriptions) }
    }

    func figures() -> [Figure] {
        guard let (gateway, subscriptions) = parts.withLock({ $0 }) else { return [] }
        let loops = gateway.figures
        func sum(_ value: (LoopFigures) -> Int) -> Int { loops.reduce(0) { $0 + value($1) } }
        let feed = subscriptions.statistics ?? FeedStatistics()
        let visibility = subscriptions.visibilityStatistics
        return [
            Figure("roost_connections", .gauge, "WebSockets open now.", sum(\.connections)),
            Figure("roost_channels", .gauge, "Channels with members, summed over loops.", sum(\.channels)),
            Figure("roost_frames_sent_total", .counter, "Frames handed to sockets.", sum(\.framesOut)),
            Figure("roost_sent_bytes_total", .counter, "Bytes handed to sockets.", sum(\.bytesOut)),
            Figure(
                "roost_writes_total", .counter, "Writes to sockets; fewer than frames where they were joined.",
                sum(\.writes)),
            Figure("roost_slow_readers_total", .counter, "Sockets cut off at their cap.", sum(\.slowReaders)),
            Figure("roost_malformed_frames_total", .counter, "Frames dropped as malformed.", sum(\.malformedFrames)),
            Figure("roost_feed_changes_total", .counter, "Row changes read.", feed.changes),
            Figure("roost_feed_polls_total", .counter, "Windows read, empty ones included.", feed.polls),
            Figure("roost_feed_rings_total", .counter, "Notifications that woke the feed.", feed.rings),
            Figure(
                "roost_feed_missed_rings_total", .counter, "Rows found by the safety poll; should stay 0.",
                feed.missedRings),
            Figure("roost_feed_connections_total", .counter, "Connections made to Postgres.", feed.connections),
            Figure("roost_feed_pruned_total", .counter, "Changes deleted after the retention.", feed.pruned),
            Figure(
                "roost_visibility_asked_total", .counter, "Decisions on a row for a subscriber, made by policies.",
                visibility.asked),
            Figure(
                "roost_visibility_kept_total", .counter, "Decisions that a scope's kept answer stood for.",
                visibility.kept),
            Figure(
                "roost_visibility_round_trips_total", .counter, "Times that Postgres was asked for decisions.",
                visibility.roundTrips),
        ]
    }
}
