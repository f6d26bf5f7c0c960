import Notify
import Ops
import Push

/// What a hub that sends pushes does, for the metrics.
extension PushService {
    var figures: [Figure] {
        let desk = statistics
        let client = clientStatistics
        return outcomes(client) + [
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
            Figure("roost_push_messages_total", .counter, "Messages whose audience was asked for.", desk.messages),
            Figure(
                "roost_push_messages_lost_total", .counter, "Messages that nobody was alerted of; should stay 0.",
                desk.lostMessages),
            Figure("roost_push_alerts_total", .counter, "Alerts that were put into the queue.", desk.alerts),
            Figure("roost_push_activities", .gauge, "Live Activities that this hub updates.", desk.activities),
            Figure(
                "roost_push_activity_states_total", .counter, "States sent to Live Activities.",
                desk.activityStates.pushed),
            Figure(
                "roost_push_activity_states_shown_total", .counter, "States shown by socket instead.",
                desk.activityStates.shown),
        ]
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
                "roost_pushes_total", .counter, "Pushes by what became of them; a refusal by Apple's reason.", count,
                label: "result=\"\(result)\"")
        }
    }
}
