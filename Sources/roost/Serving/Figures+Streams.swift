import Forwarding
import Gateway
import Ops
import Stores
import StreamFiles
import Streams

/// Figures of streams.
extension StreamStatistics {
    var figures: [Figure] {
        kept + traffic + (shared?.figures ?? [])
            // Counts that never occurred are 0 and not missing, as otherwise the first occurrence would not show as a
            // rise.
            + Figure.labelledFigures(
                "roost_stream_refused_total", .counter, "Requests about streams that were refused, by the reason.",
                "reason",
                Dictionary(
                    uniqueKeysWithValues: StreamRefusal.Reason.allCases.map { ($0.rawValue, refused[$0, default: 0]) }))
            + Figure.labelledFigures(
                "roost_streams_ended_total", .counter, "Streams that ended, by the reason.", "reason",
                Dictionary(
                    uniqueKeysWithValues: StreamEnding.Reason.allCases.map { ($0.rawValue, ended[$0, default: 0]) }))
            + [
                Figure(
                    "roost_streams_unclosed_total", .counter,
                    "Streams that ended without their row, because it could not be written.", unclosed)
            ]
    }

    private var kept: [Figure] {
        [
            Figure("roost_streams", .gauge, "Streams that are kept, those that ended included.", streams),
            Figure("roost_streams_open", .gauge, "Streams that have not ended.", open),
            Figure("roost_streams_stalled", .gauge, "Open streams whose producer is silent or gone.", stalled),
            Figure("roost_stream_bytes", .gauge, "Bytes of all streams.", bytes),
            Figure(
                "roost_stream_producers", .gauge,
                "Connections by which producers append: long requests, and WebSockets.", connectedProducers),
            Figure(
                "roost_streams_evicted_total", .counter,
                "Streams that had ended and were removed early to make room for others.",
                evicted),
        ]
    }

    private var traffic: [Figure] {
        [
            Figure("roost_stream_appends_total", .counter, "Appends that were kept.", appends),
            Figure("roost_stream_appended_bytes_total", .counter, "Bytes that were appended and kept.", appendedBytes),
            Figure("roost_stream_write_failures_total", .counter, "Writes that the disk did not take.", failures),
        ]
    }
}

/// Figures of the streams that the hubs of a cluster share.
extension StreamStatistics.Shared {
    fileprivate var figures: [Figure] {
        [
            Figure(
                "roost_stream_sharing", .gauge,
                "1 while streams can be written together with other hubs; else requests about them are refused.",
                isOpen ? 1 : 0),
            Figure(
                "roost_stream_conflicts_total", .counter,
                "Times that another hub wrote to a stream first, so the request here was decided again.", conflicts),
            Figure(
                "roost_streams_returned_total", .counter,
                "Streams that were written back, whole or in part, because Redis had lost them.", returned),
            Figure(
                "roost_streams_forked_total", .counter,
                "Streams that were deleted because two sides had written them while Redis was split.", forked),
            Figure(
                "roost_streams_damaged_total", .counter,
                "Streams in Redis, and messages about them, that could not be read and were passed over.", damaged),
        ]
    }
}

/// Figures of the readers of streams.
extension LoopFigures {
    var streamFigures: [Figure] {
        Figure.labelledFigures(
            "roost_stream_watchers", .gauge, "Readers of streams now, by the way in which they read.", "transport",
            Dictionary(
                uniqueKeysWithValues: StreamTransport.allCases.map { ($0.rawValue, streamWatchers[$0, default: 0]) }))
    }
}

/// Figures of closes that are committed with rows.
extension StreamRowWriter.Statistics {
    var figures: [Figure] {
        Figure.labelledFigures(
            "roost_stream_commits_total", .counter,
            "Ends of streams that were to be committed with a row, by result.",
            "result", ["committed": committed, "refused": refused, "unknown": unknown])
            + [Figure("roost_stream_commit_seconds", "Time to commit a close with its row, from the request.", time)]
    }
}

extension ForwardService.Statistics {
    var figures: [Figure] {
        [
            Figure(
                "roost_forwards_under_way", .gauge,
                "Requests that were passed on to your backend and are not answered.",
                underWay),
            Figure("roost_forwards_total", .counter, "Requests that were passed on to your backend.", passedOn),
        ]
            + Figure.labelledFigures(
                "roost_forwards_failed_total", .counter, "Those without a whole answer, by reason.", "reason",
                Dictionary(uniqueKeysWithValues: ForwardFailure.allCases.map { ($0.rawValue, failed[$0, default: 0]) }))
    }
}
