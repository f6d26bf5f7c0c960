import Gateway
import Hub
import Ops
import Wire

/// What the loops do, for the metrics.
extension LoopFigures {
    var connectionFigures: [Figure] {
        [
            Figure("roost_connections", .gauge, "WebSockets open now.", connections),
            Figure("roost_connections_accepted_total", .counter, "Upgrades that became WebSockets.", accepted),
        ]
            + Figure.each(
                "roost_connections_refused_total", .counter, "Upgrades that were refused, by the reason.", "reason",
                connectionsRefused)
            + Figure.each(
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
            + Figure.each(
                "roost_joins_total", .counter, "Joins, by what they were answered.", "result",
                ["ok": hub.joins, "refused": hub.joinsRefused])
            + Figure.each(
                "roost_recoveries_total", .counter,
                "Members that asked for what they missed, by what they were answered.", "result",
                // What never happened is 0 and not missing: the first time would not be seen as a rise otherwise.
                hub.recoveries.merging(
                    [
                        "resumed": 0, "too_old": 0, "other_database": 0, "ahead": 0, "malformed": 0, "unavailable": 0,
                        "undecided": 0,
                    ]
                ) { one, _ in one })
            + [
                Figure(
                    "roost_presence_members", .gauge, "Who is present, those included whose window is open.",
                    hub.presenceJoins - hub.presenceLeaves),
                Figure("roost_presence_joins_total", .counter, "Members that came.", hub.presenceJoins),
                Figure("roost_presence_leaves_total", .counter, "Members that left.", hub.presenceLeaves),
                Figure(
                    "roost_presence_leaves_avoided_total", .counter,
                    "Members that were cut off and back within their window.", hub.presenceLeavesAvoided),
                Figure(
                    "roost_typing_starts_total", .counter, "Times that somebody's typing was told.", hub.typingStarts),
            ]
    }

    var overloadFigures: [Figure] {
        [
            Figure(
                "roost_slow_reader_coalesced_total", .counter,
                "Presence frames that a lagging socket was spared; it is sent the state instead.", coalescedFrames),
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
                    "roost_refused_total", .counter, "Requests answered with an error, by the limit they were over.",
                    refused[limit, default: 0], label: "limit=\"\(limit.rawValue)\"")
            }
            + [
                Figure(
                    "roost_refused_total", .counter, "Requests answered with an error, by the limit they were over.",
                    unfinishedRefused, label: "limit=\"unfinished_bytes\"")
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
