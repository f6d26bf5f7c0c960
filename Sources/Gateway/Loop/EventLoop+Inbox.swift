import Hub

/// Handles the tasks that other threads post to a loop.
extension EventLoop {
    func drainInbox() {
        counters.turnBegins()
        hub.advanceTime(to: now())
        for task in inbox.takeAll() {
            switch task {
            case .relay(let relays): for relay in relays { hub.applyRelay(relay) }
            case .conclude(let conclusion, let member, let key): hub.concludeLease(conclusion, of: member, in: key)
            case .publish(let message, let key): hub.publishMessage(message, to: key)
            case .subscription(let id, let outcome): hub.changeSubscription(id, is: outcome)
            case .feedIsReady(let isReady):
                admission.feed(isReady: isReady)
                hub.feedChanged(isReady: isReady)
            case .authorization(let id, let outcome): hub.receiveAuthorization(id, is: outcome)
            case .publicationRight(let exchange, let topic, let outcome):
                router.decide(exchange, topic: topic, outcome)
            case .streamRight(let exchange, let outcome): router.streams.decide(exchange, outcome)
            case .streamChanged(let stream):
                stream.noteSeen(by: index)
                router.streams.changed(stream)
                hub.streamChanged(stream)
            case .streamAnswered(let id, let answer): hub.streamAnswered(id, answer)
            case .stored(let id, let row): hub.storeAnswered(id, as: row)
            case .appended(let exchange, let answer): router.streams.appended(exchange, answer)
            case .changes(let batch): changes.take(batch)
            case .ping(let places): pings.send(to: places)
            case .show(let summary): hub.showSummary(summary)
            case .adopt(let rules): adopt(rules)
            case .respond(let exchange, let response): router.replied(exchange, .answered(response))
            case .sendToOperator(let socket, let frame): operators.send(frame, to: socket)
            case .inspect(let question): question(self)
            case .take(let connection, let arrival): http.accept(connection, arrival)
            case .makeRoom: _ = makeRoom(for: nil)
            case .endIdle(let address): _ = endIdle(of: address)
            case .present(let certificate): tunnels?.present(certificate)
            case .stopAccepting: stopAccepting()
            case .closeSome(let rounds): closeSome(rounds: rounds)
            case .cutOff: for slot in delivery.sockets.indices { delivery.cutOff(Slot(slot)) }
            case .stop:
                endings.secondGoesBy(loop: index, logger)
                libuv.stop()
            }
            execute()
        }
    }

    /// Closes the listeners except the operator's port, which reports that the hub drains.
    private func stopAccepting() {
        admission.drain()
        for listener in listeners where !listener.isOps { listener.close() }
        http.drain()
        router.streams.drain()
    }
}
