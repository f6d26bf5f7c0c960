import Ops
import Stores

/// Figures of stored broadcasts.
extension MessageWriter {
    var figures: [Figure] {
        let statistics = statistics
        return [
            Figure(
                "roost_messages_stored_total", .counter, "Broadcasts that are rows of realtime.messages.",
                statistics.stored),
            Figure(
                "roost_messages_not_stored_total", .counter,
                "Broadcasts that asked to be kept and are not, or of which that is not known.", statistics.failed),
            Figure("roost_messages_store_batches_total", .counter, "Statements that wrote them.", statistics.batches),
            Figure("roost_messages_waiting", .gauge, "Broadcasts that wait to be written.", statistics.waiting),
        ]
    }
}
