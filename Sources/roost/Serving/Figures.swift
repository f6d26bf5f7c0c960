import Capture
import ChangeFeed
import Clustering
import Forwarding
import Gateway
import Hub
import Listening
import Notify
import Ops
import Push
import Stores
import StreamFiles
import Webhooks
import Wire

/// Figures of all rooms of a hub, for the metrics.
struct HubFigures: Sendable {
    let health: Health
    let gateway: Gateway
    let history: HistoryStore
    let recovery: SessionRegistry
    let subscriptions: ChangeService
    let listener: NotificationListener?
    let capture: WALCapture?
    let cluster: ClusterService?
    let webhooks: WebhookService?
    let streams: FileStreamService?
    let forwarder: ForwardService?
    /// Nil if closes are not committed with rows.
    let streamRows: StreamRowWriter?
    let pushService: PushService?
    /// Nil if receipts are not recorded.
    let receiptWriter: ReceiptWriter?
    let messageWriter: MessageWriter

    var all: [Figure] {
        ProcessFigures.all(version: Roost.version, revision: Roost.commit)
            + [Figure("roost_ready", .gauge, "1 while /readyz says ok.", health.problem == nil ? 1 : 0)]
            + ofRooms + (pushService?.figures ?? []) + (receiptWriter?.figures ?? []) + messageWriter.figures
    }

    private func streamFigures(_ loops: LoopFigures) -> [Figure] {
        guard var statistics = streams?.statistics else { return [] }
        statistics.refused[.forbidden] = loops.streamsForbidden
        return statistics.figures + loops.streamFigures + (streamRows?.statistics.figures ?? [])
    }

    private var ofRooms: [Figure] {
        let loops = gateway.figures
        var sum = LoopFigures()
        for loop in loops { sum.add(loop) }
        let gauges = [
            Figure("roost_loops", .gauge, "Event loops.", loops.count),
            Figure(
                "roost_connections_limit", .gauge,
                "The most WebSockets that are accepted; 0: as many as open files allow.",
                gateway.capacity),
        ]
        return gauges + gateway.certificateFigures + sum.connectionFigures + sum.trafficFigures + sum.hubFigures
            + sum.overloadFigures
            + sum.turnFigures + history.list + subscriptions.figures + [
                Figure(
                    "roost_sessions_given_way_total", .counter,
                    "Sessions that were remembered for clients to come back, and gave way to others of their user.",
                    recovery.sessionsGivenWay),
                Figure(
                    "roost_feed_behind_seconds", .gauge,
                    "Time since all that was in the outbox was handed on; 0 while the feed is down.",
                    Int(subscriptions.behind?.components.seconds ?? 0)),
                Figure(
                    "roost_feed_lag_seconds",
                    "Time from a row's commit until it is handed to sockets, for each group of subscribers.", sum.lag),
            ] + (listener?.statistics.figures ?? []) + (capture?.current.figures ?? [])
            + (cluster?.statistics.figures ?? []) + (webhooks?.statistics.figures ?? [])
            + streamFigures(sum) + (forwarder?.statistics.figures ?? [])
    }
}

/// Figures of the event loops.
extension LoopFigures {
    var connectionFigures: [Figure] {
        [
            Figure("roost_connections", .gauge, "WebSockets open now.", connections),
            Figure("roost_connections_accepted_total", .counter, "Upgrades that became WebSockets.", accepted),
            Figure(
                "roost_http_connections", .gauge,
                "Connections of clients without a WebSocket now: idle ones, and requests that are not answered yet.",
                httpConnections),
            Figure(
                "roost_http_connections_displaced_total", .counter,
                "Connections without a WebSocket that were ended to make room for others.", displaced),
            Figure(
                "roost_connections_unheard_total", .counter,
                "Connections closed unheard: files ran out, or their address had far too many.", unheard),
            Figure(
                "roost_event_subscriptions", .gauge, "Subscriptions without a WebSocket: HTTP answers with events.",
                eventReaders),
        ]
            + Figure.labelledFigures(
                "roost_connections_refused_total", .counter, "Upgrades that were refused, by the reason.", "reason",
                connectionsRefused)
            + Figure.labelledFigures(
                "roost_connections_closed_total", .counter,
                "WebSockets that ended, by the code of the close frame; 1006: without one.", "code",
                Dictionary(uniqueKeysWithValues: connectionsClosed.map { ($0.map { String($0) } ?? "other", $1) }))
    }

    var trafficFigures: [Figure] {
        [
            Figure("roost_frames_received_total", .counter, "Messages from clients.", framesIn),
            Figure("roost_received_bytes_total", .counter, "Bytes of messages from clients.", bytesIn),
            Figure("roost_malformed_frames_total", .counter, "Messages dropped as malformed.", malformedFrames),
            Figure("roost_frames_sent_total", .counter, "Frames handed to sockets.", framesOut),
            Figure("roost_sent_bytes_total", .counter, "Bytes handed to sockets.", bytesOut),
            Figure(
                "roost_writes_total", .counter, "Writes to sockets; fewer than frames where they were joined.", writes),
            Figure("roost_pending_bytes", .gauge, "Bytes that wait for sockets to take them.", pendingBytes),
            Figure("roost_send_batches", .gauge, "Loops that send to many sockets by one io_uring call.", batching),
        ]
    }

    var hubFigures: [Figure] {
        [
            Figure("roost_channels", .gauge, "Channels with members, summed over loops.", channels),
            Figure("roost_memberships", .gauge, "Sockets in channels.", hub.memberships),
            Figure("roost_subscriptions", .gauge, "Groups of subscribers to row changes.", subscriptions),
        ]
            + Figure.labelledFigures(
                "roost_joins_total", .counter, "Joins, by result.", "result",
                ["ok": hub.joins, "refused": hub.joinsRefused])
            + Figure.labelledFigures(
                "roost_joins_refused_total", .counter,
                "Joins that were refused, and row changes that failed behind a join, by the reason.", "reason",
                Dictionary(
                    uniqueKeysWithValues: JoinFailure.Reason.allCases.map {
                        ($0.rawValue, hub.joinFailures[$0, default: 0])
                    }))
            + Figure.labelledFigures(
                "roost_messages_refused_total", .counter,
                "Messages of clients that were refused and reached nobody, by the reason.", "reason",
                Dictionary(
                    uniqueKeysWithValues: JoinFailure.Reason.allCases.map {
                        ($0.rawValue, hub.messagesRefused[$0, default: 0])
                    }))
            + [
                Figure(
                    "roost_messages_stale_total", .counter,
                    "Messages that were dropped, because they were sent for a join that another has replaced.",
                    hub.staleMessages)
            ]
            + Figure.labelledFigures(
                "roost_recoveries_total", .counter,
                "Members that asked for what they missed, by result.", "result",
                // Counts that never occurred are 0 and not missing, as otherwise the first occurrence would not show as
                // a rise.
                hub.recoveries.merging(
                    [
                        "resumed": 0, "rows": 0, "too_old": 0, "other_database": 0, "ahead": 0, "malformed": 0,
                        "unavailable": 0,
                        "undecided": 0,
                    ]
                ) { one, _ in one })
            + [
                Figure(
                    "roost_presence_members", .gauge, "Members present, including those whose window is open.",
                    hub.presenceJoins - hub.presenceLeaves),
                Figure("roost_presence_joins_total", .counter, "Members that came.", hub.presenceJoins),
                Figure("roost_presence_leaves_total", .counter, "Members that left.", hub.presenceLeaves),
                Figure(
                    "roost_presence_leaves_avoided_total", .counter,
                    "Members that were cut off and back within their window.", hub.presenceLeavesAvoided),
                Figure(
                    "roost_typing_starts_total", .counter, "Times that a member was announced as typing.",
                    hub.typingStarts),
            ]
    }

    var overloadFigures: [Figure] {
        [
            Figure(
                "roost_slow_reader_coalesced_total", .counter,
                "Presence frames that were not sent to a lagging socket; it is sent the state instead.", coalescedFrames
            ),
            Figure(
                "roost_slow_reader_written_off_total", .counter, "Sockets that row changes stopped waiting for.",
                slowReadersWrittenOff),
            Figure("roost_slow_reader_closed_total", .counter, "Sockets closed at their cap.", slowReadersClosed),
            Figure(
                "roost_slow_reader_cut_total", .counter, "Sockets ended because they did not take a close frame.",
                slowReadersCut),
            Figure(
                "roost_changes_held_seconds_total", .counter,
                "Time in which row changes were held back for slow readers, summed over loops.",
                Double(heldMilliseconds) / 1000),
        ]
            + Limit.allCases.map { limit in
                Figure(
                    "roost_refused_total", .counter, "Requests answered with an error, by the limit they exceeded.",
                    refused[limit, default: 0], label: "limit=\"\(limit.rawValue)\"")
            }
            + [
                Figure(
                    "roost_refused_total", .counter, "Requests answered with an error, by the limit they exceeded.",
                    unfinishedRefused, label: "limit=\"unfinished_bytes\""),
                Figure(
                    "roost_refused_total", .counter, "Requests answered with an error, by the limit they exceeded.",
                    overShare, label: "limit=\"requests_per_user\""),
            ]
            + Pace.allCases.map { pace in
                Figure(
                    "roost_slowed_total", .counter, "Times that a socket was left unread for a moment, by the rate.",
                    slowed[pace, default: 0], label: "limit=\"\(pace.rawValue)\"")
            }
    }

    var turnFigures: [Figure] {
        [
            Figure("roost_loop_turn_seconds", "Turns of event loops, from waking to waiting again.", turns),
            Figure(
                "roost_loop_stalls_total", .counter, "Turns of more than 100 ms, in which nobody else was served.",
                stalls),
        ]
    }
}

/// Figures of the change feed.
extension ChangeService {
    private var outboxFigures: [Figure] {
        guard let outbox else { return [] }
        return [
            Figure("roost_outbox_rows", .gauge, "Changes that are kept; an estimate.", outbox.rows),
            Figure("roost_outbox_bytes", .gauge, "Bytes of changes that are kept.", outbox.bytes),
            Figure("roost_outbox_age_seconds", .gauge, "Age of the oldest change that is kept.", outbox.ageSeconds),
        ]
    }

    var figures: [Figure] {
        let feed = statistics
        let visibility = visibilityStatistics
        return [
            Figure("roost_feed_up", .gauge, "1 while row changes flow.", status == .ready ? 1 : 0),
            Figure("roost_feed_changes_total", .counter, "Row changes read.", feed.changes),
            Figure(
                "roost_feed_passed_total", .counter,
                "Row changes not read because nobody subscribes to their tables; an estimate.",
                feed.passed),
            Figure("roost_feed_polls_total", .counter, "Windows read, empty ones included.", feed.polls),
            Figure("roost_feed_rings_total", .counter, "Notifications that woke the feed.", feed.rings),
            Figure(
                "roost_feed_missed_rings_total", .counter, "Rows found by the safety poll; should stay 0.",
                feed.missedRings),
            Figure("roost_feed_connections_total", .counter, "Connections made to Postgres.", feed.connections),
            Figure("roost_feed_pruned_total", .counter, "Changes deleted after the retention.", feed.pruned),
            Figure(
                "roost_feed_interruptions_total", .counter,
                "Tables whose capture was interrupted, so that clients had to load their data again.",
                feed.interruptions),
            Figure(
                "roost_feed_faulty_tables", .gauge, "Watched tables of which changes are lost or come twice.",
                feed.faultyTables),
            Figure(
                "roost_feed_recovery_reads_total", .counter, "Reads of what members missed.", feed.recoveryReads),
            Figure(
                "roost_visibility_asked_total", .counter, "Decisions on a row for a subscriber, made by policies.",
                visibility.asked),
            Figure(
                "roost_visibility_kept_total", .counter, "Decisions taken from the kept answer of a scope.",
                visibility.kept),
            Figure(
                "roost_visibility_round_trips_total", .counter, "Times that Postgres was asked for decisions.",
                visibility.roundTrips),
            Figure("roost_visibility_seconds", "Time to ask Postgres for decisions once.", visibility.time),
            Figure(
                "roost_feed_undecided_changes", .gauge,
                "Changes that wait until Postgres has decided filters; others do not wait for them.", undecidedChanges),
            Figure(
                "roost_statements_abandoned_total", .counter,
                "Statements that took too long and were cancelled.", abandonedStatements),
        ]
            + Figure.labelledFigures(
                "roost_filters_ended_total", .counter, "Filters that were given up, by the reason.", "reason",
                Dictionary(uniqueKeysWithValues: FilterEnd.allCases.map { ($0.rawValue, filterEnds[$0, default: 0]) }))
            + outboxFigures
    }
}

/// Figures of notifications.
extension NotificationStatistics {
    var figures: [Figure] {
        [
            Figure("roost_notify_up", .gauge, "1 while the hub listens to channels of Postgres.", isListening ? 1 : 0),
            Figure("roost_notify_gaps_total", .counter, "Times that members were told of missing notifications.", gaps),
        ]
            + Figure.labelledFigures(
                "roost_notifications_total", .counter, "Notifications, by result.", "result",
                ["sent": sent, "no_field": withoutField, "impossible": impossible, "dropped": dropped])
    }
}

/// Figures of reading the WAL.
extension CaptureReport {
    var figures: [Figure] {
        let states = CaptureReport.State.allCases.map { state in
            Figure(
                "roost_capture_state", .gauge, "1 for what this hub does with the WAL; of several hubs one is leading.",
                self.state == state ? 1 : 0, label: "state=\"\(state.rawValue)\"")
        }
        let counters = [
            Figure("roost_capture_rows_total", .counter, "Changes that this hub stored from the WAL.", rows),
            Figure(
                "roost_capture_texts_total", .counter,
                "Of these, those with values as texts that could not be written as JSON.", rowsAsTexts),
            Figure(
                "roost_capture_lost_total", .counter, "Changes that could not be stored, and were passed.", rowsLost),
            Figure("roost_capture_batches_total", .counter, "Transactions in which it stored them.", batches),
        ]
        let slot = [
            Figure(
                "roost_capture_waiting_seconds", .gauge,
                "How long changes that were read have waited to be stored; 0 while none do.",
                Int(waiting?.components.seconds ?? 0)),
            keptBytes.map {
                Figure("roost_capture_kept_bytes", .gauge, "Bytes of WAL that Postgres keeps for the slot.", Int($0))
            },
            lagBytes.map {
                Figure("roost_capture_lag_bytes", .gauge, "Bytes of WAL that are not read yet, or not stored.", Int($0))
            },
        ]
        return states + counters + slot.compactMap { $0 }
    }
}

/// Figures of the history of broadcasts.
extension HistoryStore {
    var list: [Figure] {
        let kept = figures
        return [
            Figure("roost_history_channels", .gauge, "Channels that keep broadcasts.", kept.channels),
            Figure("roost_history_messages", .gauge, "Broadcasts that are kept.", kept.messages),
            Figure("roost_history_bytes", .gauge, "Bytes of broadcasts that are kept.", kept.bytes),
        ]
    }
}

/// Figures of receipts.
extension ReceiptWriter {
    var figures: [Figure] {
        let statistics = statistics
        return [
            Figure("roost_receipts_proven_total", .counter, "Receipts that sockets proved.", statistics.proven),
            Figure(
                "roost_receipts_written_total", .counter, "Receipts that receipts.statement took.", statistics.written),
            Figure("roost_receipts_waiting", .gauge, "Receipts that wait to be written.", statistics.waiting),
            Figure(
                "roost_receipts_refused_total", .counter, "Receipts that receipts.statement refused.",
                statistics.refused),
            Figure("roost_receipts_batches_total", .counter, "Statements that wrote receipts.", statistics.batches),
            Figure(
                "roost_receipts_failures_total", .counter,
                "Connections that were lost, and batches that have to be tried again.", statistics.failures),
        ]
    }
}

extension Gateway {
    /// The certificate's expiry; empty without TLS.
    var certificateFigures: [Figure] {
        guard let certificate else { return [] }
        return [
            Figure(
                "roost_tls_certificate_expiry_seconds", .gauge,
                "When the certificate that new connections are shown expires, in seconds since 1970.", certificate.ends)
        ]
    }
}
