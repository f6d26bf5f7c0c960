import Hub
import Notify
import Ops
import Push

/// Figures of pushes.
extension PushService {
    var figures: [Figure] {
        let service = statistics
        let clients = clientStatistics.sorted { $0.key.rawValue < $1.key.rawValue }
        return clients.flatMap { outcomes($0.value, of: $0.key) } + decisions(service) + sending(clients) + [
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

    /// The figures of sending, by kind: one figure after the other, each for all kinds.
    private func sending(_ clients: [(key: PushKind, value: PushStatistics)]) -> [Figure] {
        func figures(_ name: String, _ type: Figure.Kind, _ help: String, _ value: (PushStatistics) -> Int) -> [Figure]
        {
            clients.map { Figure(name, type, help, value($0.value), label: "kind=\"\($0.key)\"") }
        }
        return figures("roost_push_retries_total", .counter, "Pushes that were sent again.", \.retries)
            + figures("roost_push_queue", .gauge, "Pushes that wait in memory for their service.", \.queued)
            + figures("roost_push_in_flight", .gauge, "Pushes that their service has not answered.", \.inFlight)
            + figures(
                "roost_push_connections_total", .counter, "Connections made to push services.", \.connectionsOpened)
            + figures(
                "roost_push_connections_retired_total", .counter, "Connections given up because nothing was answered.",
                \.connectionsRetired)
            + figures(
                "roost_push_circuit_open", .gauge, "Servers that refuse the operator's key; the log says why."
            ) { $0.circuitsOpen.count }
            + figures(
                "roost_push_provider_token_age_seconds", .gauge,
                "How old what pushes are authorized with is; Apple's is renewed at 2700, Google's at 3300."
            ) { $0.providerTokenAge ?? 0 }
    }

    private func outcomes(_ client: PushStatistics, of kind: PushKind) -> [Figure] {
        var counts = [
            ("delivered", client.delivered), ("unregistered", client.unregistered), ("superseded", client.superseded),
            ("expired", client.expired), ("overflow", client.overflow), ("too_large", client.tooLarge),
            ("unanswered", client.unanswered), ("stopped", client.stopped),
        ]
        counts += client.refused.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        return counts.map { result, count in
            Figure(
                "roost_pushes_total", .counter, "Pushes, by kind and result; a refusal by the service's reason.", count,
                label: "kind=\"\(kind)\",result=\"\(result)\"")
        }
    }
}
