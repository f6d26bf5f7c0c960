import CWebSockets
import Hub
import Wire

/// An operator's queries to a loop. Each walks over the loop's connections once, and frames wait no longer than that.
extension EventLoop {
    func id(of slot: Slot) -> ConnectionID {
        ConnectionID(loop: index, slot: slot, serial: delivery.accounts[Int(slot)].serial)
    }

    /// Nil if the connection is gone, even if another one has its slot now.
    private func slot(of id: ConnectionID) -> Slot? {
        let place = Int(id.slot)
        guard id.loop == index, delivery.sockets.indices.contains(place), delivery.accounts[place].serial == id.serial,
            delivery.sockets[place].isOpen
        else { return nil }
        return id.slot
    }

    /// Sockets that do not keep up, slowest first.
    func slowReaders(limit: Int) -> [SocketView] {
        let slow = delivery.sockets.indices.filter {
            delivery.sockets[$0].isOpen && delivery.pending.bytes(Slot($0)) > 0
        }
        let slowest = slow.sorted { delivery.pending.bytes(Slot($0)) > delivery.pending.bytes(Slot($1)) }
        return slowest.prefix(limit).compactMap { socketView(of: Slot($0)) }
    }

    /// The sockets opened last, newest first.
    func newestSockets(limit: Int) -> [SocketView] {
        var newest: [Int] = []
        for slot in delivery.sockets.indices where delivery.sockets[slot].isOpen {
            let serial = delivery.accounts[slot].serial
            if newest.count == limit, let last = newest.last, serial < delivery.accounts[last].serial { continue }
            newest.insert(slot, at: newest.firstIndex { delivery.accounts[$0].serial < serial } ?? newest.count)
            if newest.count > limit { newest.removeLast() }
        }
        return newest.compactMap { socketView(of: Slot($0)) }
    }

    func sockets(ofUser user: Name, limit: Int) -> [SocketView] {
        hub.slots(ofUser: user).prefix(limit).compactMap(socketView)
    }

    func report(on id: ConnectionID) -> ConnectionReport? {
        guard let slot = slot(of: id), let socket = socketView(of: slot), let connection = hub.connection(at: slot)
        else {
            return nil
        }
        let trace = delivery.tracer.look(at: slot, second: second)
        return ConnectionReport(
            socket: socket, connection: connection, silence: Int(second - delivery.sockets[Int(slot)].lastHeard),
            trace: trace)
    }

    func reports(onChannel topic: String, limit: Int) -> [ChannelReport] {
        hub.channels(named: topic, limit: limit).map { view in
            ChannelReport(loop: index, view: view, members: view.members.map { id(of: $0.slot) })
        }
    }

    /// - Returns: whether the connection was open and not closing already.
    func disconnect(_ id: ConnectionID) -> Bool {
        guard let slot = slot(of: id), !delivery.sockets[Int(slot)].isClosing else { return false }
        disconnect(slot, Self.byOperator)
        return true
    }

    /// - Returns: the number of connections.
    func disconnect(user: Name, reason: StaticString = EventLoop.byOperator) -> Int {
        let slots = hub.slots(ofUser: user).filter { !delivery.sockets[Int($0)].isClosing }
        for slot in slots { disconnect(slot, reason) }
        return slots.count
    }

    /// Disconnects a client in a way that makes it reconnect.
    private func disconnect(_ slot: Slot, _ reason: StaticString) {
        beginClosing(slot, .serviceRestart, reason: reason)
    }

    static let byOperator: StaticString = "disconnected by the operator"

    private func socketView(of slot: Slot) -> SocketView? {
        let socket = delivery.sockets[Int(slot)]
        guard socket.isOpen, let connection = hub.connection(at: slot) else { return nil }
        return SocketView(
            id: id(of: slot), address: delivery.accounts[Int(slot)].peer?.text ?? "", user: connection.user,
            channels: connection.memberships.count, seconds: Int(second - delivery.accounts[Int(slot)].openedAt),
            pendingBytes: delivery.pending.bytes(slot), isBehind: socket.isBehind, isWrittenOff: socket.isWrittenOff,
            isClosing: socket.isClosing)
    }
}
