import Hub
import Ops

/// What is kept of broadcasts, for the metrics.
extension HistoryBook {
    var list: [Figure] {
        let kept = figures
        return [
            Figure("roost_history_channels", .gauge, "Channels that keep broadcasts.", kept.channels),
            Figure("roost_history_messages", .gauge, "Broadcasts that are kept.", kept.messages),
            Figure("roost_history_bytes", .gauge, "Bytes of broadcasts that are kept.", kept.bytes),
        ]
    }
}
