import ChangeFeed
import Ops

/// What the feed of row changes does, for the metrics.
extension ChangeSubscriptions {
    private var outboxFigures: [Figure] {
        guard let outbox else { return [] }
        return [
            Figure("roost_outbox_rows", .gauge, "Changes that are kept, about.", outbox.rows),
            Figure("roost_outbox_bytes", .gauge, "Bytes of changes that are kept.", outbox.bytes),
            Figure("roost_outbox_age_seconds", .gauge, "Age of the oldest change that is kept.", outbox.ageSeconds),
        ]
    }

    var figures: [Figure] {
        let feed = statistics ?? FeedStatistics()
        let visibility = visibilityStatistics
        return [
            Figure("roost_feed_up", .gauge, "1 while row changes flow.", status == .ready ? 1 : 0),
            Figure("roost_feed_changes_total", .counter, "Row changes read.", feed.changes),
            Figure("roost_feed_polls_total", .counter, "Windows read, empty ones included.", feed.polls),
            Figure("roost_feed_rings_total", .counter, "Notifications that woke the feed.", feed.rings),
            Figure(
                "roost_feed_missed_rings_total", .counter, "Rows found by the safety poll; should stay 0.",
                feed.missedRings),
            Figure("roost_feed_connections_total", .counter, "Connections made to Postgres.", feed.connections),
            Figure("roost_feed_pruned_total", .counter, "Changes deleted after the retention.", feed.pruned),
            Figure(
                "roost_feed_recovery_reads_total", .counter, "Readings of what members missed.", feed.recoveryReads),
            Figure(
                "roost_visibility_asked_total", .counter, "Decisions on a row for a subscriber, made by policies.",
                visibility.asked),
            Figure(
                "roost_visibility_kept_total", .counter, "Decisions that a scope's kept answer stood for.",
                visibility.kept),
            Figure(
                "roost_visibility_round_trips_total", .counter, "Times that Postgres was asked for decisions.",
                visibility.roundTrips),
            Figure("roost_visibility_seconds", "Asking Postgres for decisions once.", visibility.time),
            Figure(
                "roost_feed_undecided_changes", .gauge,
                "Changes that wait until Postgres has decided filters; others do not wait for them.", undecidedChanges),
            Figure(
                "roost_statements_abandoned_total", .counter,
                "Statements that were not waited for any longer, and cancelled.", abandonedStatements),
        ]
            + Figure.each(
                "roost_filters_ended_total", .counter, "Filters that were given up, by the reason.", "reason",
                Dictionary(uniqueKeysWithValues: FilterEnd.allCases.map { ($0.rawValue, filterEnds[$0, default: 0]) }))
            + outboxFigures
    }
}
