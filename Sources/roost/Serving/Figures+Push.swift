import Hub
import Notify
import Ops
import Push

/// Figures of pushes.
extension PushService {
    var figures: [Figure] {
        let service = statistics
        let client = clientStatistics
        return outcomes(client) + decisions(service) + [
            Figure("roost_push_retries_total", .counter, "Pushes that were sent again.", client.retries),
            Figure("roost_push_queue", .gauge, "Pushes that wait in memory for Apple.", client.queued),
            Figure("roost_push_in_flight", .gauge, "Pushes that Apple has not answered.", client.inFlight),
            Figure("roost_push_connections_total", .counter, "Connections made to Apple.", client.connectionsOpened),
            Figure(
                "roost_push_connections_retired_total", .counter, "Connections given up because nothing was answered.",
                client.connectionsRetired),
            Figure(
                "roost_push_circuit_open", .gauge, "Servers that refuse the operator's key; the log says why.",
                client.circuitsOpen.count),
            Figure(
                "roost_push_provider_token_age_seconds", .gauge,
                "How old the provider token is; it is renewed at 2700.",
                client.providerTokenAge ?? 0),
            Figure("roost_push_messages_total", .counter, "Messages whose audience was asked for.", service.messages),
            Figure(
                "roost_push_messages_lost_total", .counter, "Messages that nobody was alerted of; should stay 0.",
                service.lostMessages),
            Figure(
                "roost_push_timed_rows_total", .counter, "Rows whose audience was asked for as their time had come.",
                service.timedRows),
            Figure(
                "roost_push_timed_rows_late_total", .counter, "Rows that were pushed more than 10 s after their time.",
                service.lateTimedRows),
            Figure(
                "roost_push_timed_rows_lost_total", .counter,
                "Rows whose time had come and that nobody was alerted of; should stay 0.", service.lostTimedRows),
            Figure(
                "roost_push_timed_alerts_withheld_total", .counter,
                "Alerts beyond the 60 that one user gets in a minute.", service.withheldTimedAlerts),
            Figure("roost_push_alerts_total", .counter, "Alerts that were put into the queue.", service.alerts),
            Figure(
                "roost_push_proof_seconds",
                "How long apps took to prove that a message arrived, from when they were asked.",
                service.proofs),
            Figure(
                "roost_push_badges_total", .counter, "Numbers pushed to icons because something was read elsewhere.",
                service.badges),
            Figure("roost_push_activities", .gauge, "Live Activities that this hub updates.", service.activities),
            Figure(
                "roost_push_activity_states_total", .counter, "States sent to Live Activities.",
                service.activityStates.pushed),
            Figure(
                "roost_push_activity_states_shown_total", .counter, "States shown by socket instead.",
                service.activityStates.shown),
        ]
    }

    private func decisions(_ service: PushServiceStatistics) -> [Figure] {
        AlertReason.allCases.map { reason in
            Figure(
                "roost_push_decisions_total", .counter,
                "Alerts that were decided on, by why: shown, received, connected and returned are not sent.",
                service.alertReasons[reason] ?? 0, label: "reason=\"\(reason)\"")
        }
    }

    private func outcomes(_ client: PushStatistics) -> [Figure] {
        var counts = [
            ("delivered", client.delivered), ("unregistered", client.unregistered), ("superseded", client.superseded),
            ("expired", client.expired), ("overflow", client.overflow), ("too_large", client.tooLarge),
            ("unanswered", client.unanswered), ("stopped", client.stopped),
        ]
        counts += client.refused.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        return counts.map { result, count in
            Figure(
                "roost_pushes_total", .counter, "Pushes, by result; a refusal by Apple's reason.", count,
                label: "result=\"\(result)\"")
        }
    }
}
