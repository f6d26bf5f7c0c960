import ChangeFeed
import Gateway
import Hub
import Ops
import Synchronization
import Wire

/// The running rooms, for those who count what they do.
final class Rooms: Sendable {
    private let parts = Mutex<(Gateway, ChangeSubscriptions, HistoryBook)?>(nil)

    func set(_ gateway: Gateway, _ subscriptions: ChangeSubscriptions, _ history: HistoryBook) {
        parts.withLock { $0 = (gateway, subscriptions, history) }
    }

    func figures() -> [Figure] {
        guard let (gateway, subscriptions, history) = parts.withLock({ $0 }) else { return [] }
        let loops = gateway.figures
        func sum(_ value: (LoopFigures) -> Int) -> Int { loops.reduce(0) { $0 + value($1) } }
        let feed = subscriptions.statistics ?? FeedStatistics()
        let visibility = subscriptions.visibilityStatistics
        let kept = history.figures
        return [
            Figure("roost_connections", .gauge, "WebSockets open now.", sum(\.connections)),
            Figure("roost_channels", .gauge, "Channels with members, summed over loops.", sum(\.channels)),
            Figure("roost_frames_sent_total", .counter, "Frames handed to sockets.", sum(\.framesOut)),
            Figure("roost_sent_bytes_total", .counter, "Bytes handed to sockets.", sum(\.bytesOut)),
            Figure(
                "roost_writes_total", .counter, "Writes to sockets; fewer than frames where they were joined.",
                sum(\.writes)),
            Figure(
                "roost_slow_reader_coalesced_total", .counter,
                "Presence frames that a lagging socket was spared; it is sent the state instead.",
                sum(\.coalescedFrames)),
            Figure(
                "roost_slow_reader_written_off_total", .counter, "Sockets that row changes stopped waiting for.",
                sum(\.slowReadersWrittenOff)),
            Figure(
                "roost_slow_reader_closed_total", .counter, "Sockets closed at their cap.", sum(\.slowReadersClosed)),
            Figure(
                "roost_slow_reader_cut_total", .counter, "Sockets ended because they did not take a close frame.",
                sum(\.slowReadersCut)),
            Figure(
                "roost_changes_held_milliseconds_total", .counter,
                "Time in which row changes were held back for slow readers, summed over loops.",
                sum(\.heldMilliseconds)),
            Figure("roost_malformed_frames_total", .counter, "Frames dropped as malformed.", sum(\.malformedFrames)),
            Figure("roost_history_channels", .gauge, "Channels that keep broadcasts.", kept.channels),
            Figure("roost_history_messages", .gauge, "Broadcasts that are kept.", kept.messages),
            Figure("roost_history_bytes", .gauge, "Bytes of broadcasts that are kept.", kept.bytes),
        ] + limits(loops) + [
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

    private func limits(_ loops: [LoopFigures]) -> [Figure] {
        Limit.allCases.map { limit in
            Figure(
                "roost_refused_total", .counter, "Requests answered with an error, by the limit they were over.",
                loops.reduce(0) { $0 + $1.refused[limit, default: 0] }, label: "limit=\"\(limit.rawValue)\"")
        }
            + Pace.allCases.map { pace in
                Figure(
                    "roost_slowed_total", .counter, "Times that a socket was left unread for a moment, by the rate.",
                    loops.reduce(0) { $0 + $1.slowed[pace, default: 0] }, label: "limit=\"\(pace.rawValue)\"")
            }
    }
}
