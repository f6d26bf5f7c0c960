import ChangeFeed
import Gateway
import Hub
import Ops
import Synchronization

/// The running rooms, for those who count what they do.
final class Rooms: Sendable {
    private let parts = Mutex<(Gateway, ChangeSubscriptions, HistoryBook)?>(nil)

    func set(_ gateway: Gateway, _ subscriptions: ChangeSubscriptions, _ history: HistoryBook) {
        parts.withLock { $0 = (gateway, subscriptions, history) }
    }

    func figures() -> [Figure] {
        guard let (gateway, subscriptions, history) = parts.withLock({ $0 }) else { return [] }
        let loops = gateway.figures
        var sum = LoopFigures()
        for loop in loops { sum.add(loop) }
        let gauges = [
            Figure("roost_loops", .gauge, "Event loops.", loops.count),
            Figure(
                "roost_connections_limit", .gauge, "WebSockets that are let in; 0: as many as there are files.",
                gateway.capacity),
        ]
        return gauges + gateway.certificateFigures + sum.connectionFigures + sum.trafficFigures + sum.hubFigures
            + sum.overloadFigures
            + sum.turnFigures + history.list + subscriptions.figures + [
                Figure(
                    "roost_feed_lag_seconds",
                    "From a row's commit to its being handed to sockets, for each group of subscribers.", sum.lag)
            ]
    }
}
