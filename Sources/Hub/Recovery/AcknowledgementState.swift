import Synchronization
package import Wire

/// Proof of what one socket has received, shared by all its memberships.
///
/// A pong is the acknowledgement: WebSocket libraries read in order and answer a ping when they come to it (RFC 6455,
/// section 5.5.3), also through proxies. Acknowledgement by the peer's kernel means less: a proxy's kernel acknowledges
/// for the client, and bytes that are still unread in a receive buffer when the client gives the socket up are
/// acknowledged as well.
///
/// Safe from any thread: joins on other loops inspect this socket's sessions.
package final class AcknowledgementState: Sendable {
    struct Acknowledgement {
        /// Counts the pings, so that a membership can tell whether one was sent after its live changes began.
        var serial = 0
        /// Everything the feed passed on up to this mark has arrived.
        var mark: Int
        /// The hub's clock when the answered ping was sent, in monotonic milliseconds: the socket was alive then.
        var at = Int64.min
        /// The same moment, as counted by `SessionRegistry.moment`.
        var moment = 0
    }

    private let state: Mutex<Acknowledgement>
    /// The socket to ask for another acknowledgement.
    let socket: SocketPlace

    init(mark: Int, of socket: SocketPlace) {
        state = Mutex(Acknowledgement(mark: mark))
        self.socket = socket
    }

    var latest: Acknowledgement { state.withLock { $0 } }

    func moveForward(to acknowledgement: Acknowledgement) {
        state.withLock { if acknowledgement.serial > $0.serial { $0 = acknowledgement } }
    }
}

/// A socket of one of the loops. Once it is closed, the slot may belong to another one.
package struct SocketPlace: Sendable, Hashable {
    package let slot: Slot
    /// Small, because each user has a place.
    private let number: Int32

    package var loop: Int { Int(number) }

    package init(loop: Int, slot: Slot) {
        number = Int32(truncatingIfNeeded: loop)
        self.slot = slot
    }
}

/// Pings and pongs of sockets.
extension CatchUp {
    /// Returns the socket's state, which is created for the first membership that hears row changes or has history.
    func acknowledgementState(of connection: Connection, _ progress: FeedProgress, _ hub: inout HubContext)
        -> AcknowledgementState
    {
        if let acknowledged = connection.acknowledged { return acknowledged }
        let acknowledged = AcknowledgementState(
            mark: progress.mark, of: SocketPlace(loop: hub.loop, slot: connection.slot))
        // A reader of events answers no pings.
        guard connection.reader == nil else { return acknowledged }
        connection.acknowledged = acknowledged
        return acknowledged
    }

    /// Makes a ping whose answer acknowledges everything sent to the socket before it; nil if no acknowledgement is
    /// needed.
    package func makePing(_ connection: Connection, _ progress: FeedProgress, _ hub: inout HubContext) -> Frame? {
        // Sockets asked for signs of life or receipts need the state even if they never get changes or history.
        if connection.acknowledged == nil, connection.liveness != nil || connection.isAskedForReceipts {
            _ = acknowledgementState(of: connection, progress, &hub)
        }
        guard connection.acknowledged != nil else { return nil }
        let serial = connection.nextPing
        connection.openPing = AcknowledgementState.Acknowledgement(
            serial: serial, mark: progress.mark, at: hub.now.monotonic, moment: sessions.moment())
        connection.liveness?.recordPing(at: hub.now.monotonic)
        for membership in connection.memberships { membership.recovery?.recordPing(acknowledgedBy: serial) }
        return .ping(String(serial))
    }

    /// Whether the payload answers the last ping sent to the socket.
    func isAnswered(_ connection: Connection, by payload: some Sequence<UInt8>) -> Bool {
        connection.openPing.map { payload.elementsEqual(String($0.serial).utf8) } ?? false
    }

    /// Handles the answer to a ping.
    ///
    /// - Returns: whether it answers the last ping.
    package func receivePong(_ payload: some Sequence<UInt8>, from connection: Connection, _ hub: inout HubContext)
        -> Bool
    {
        guard let asked = connection.openPing, isAnswered(connection, by: payload) else { return false }
        connection.openPing = nil
        connection.acknowledged?.moveForward(to: asked)
        for membership in connection.memberships { membership.recovery?.pingAnswered(by: asked.serial) }
        lookAtArrivals(&hub)
        return true
    }

    /// Records that the socket has acknowledged everything it was sent: anything the feed brought since did not concern
    /// it.
    func nothingUnacknowledged(of connection: Connection, _ progress: FeedProgress) {
        guard let acknowledged = connection.acknowledged, connection.openPing == nil else { return }
        let last = acknowledged.latest
        // This is no sign of life.
        if last.mark < progress.mark {
            acknowledged.moveForward(
                to: .init(serial: last.serial + 1, mark: progress.mark, at: last.at, moment: last.moment))
        }
    }
}

/// The gateway's interface to acknowledgements.
extension Hub {
    /// Makes a ping whose answer acknowledges everything sent to the socket before it; nil if no acknowledgement is
    /// needed.
    package func acknowledgementPing(for slot: Slot) -> Frame? {
        guard let connection = connection(slot) else { return nil }
        if connection.acknowledged == nil, receipts.areOwed(by: connection) {
            _ = catchUp.acknowledgementState(of: connection, rows.progress, &context)
        }
        return catchUp.makePing(connection, rows.progress, &context)
    }

    /// Whether the socket was sent rows whose receipts are written back, and has neither proven them nor been asked to.
    package func owesReceipts(_ slot: Slot) -> Bool {
        guard receipts.areWritten, let connection = connection(slot), connection.openPing == nil else { return false }
        return receipts.areOwed(by: connection)
    }

    /// Whether the socket must be asked for a sign of life every few seconds.
    package func isWatched(_ slot: Slot) -> Bool { connection(slot)?.liveness != nil }

    /// Handles the answer to a ping.
    ///
    /// - Returns: whether it answers the last ping.
    @discardableResult package func receivePong(_ payload: some Sequence<UInt8>, from slot: Slot) -> Bool {
        guard let connection = connection(slot) else { return false }
        if receipts.areWritten, catchUp.isAnswered(connection, by: payload) {
            receipts.recordReceipts(provenBy: connection, &context)
        }
        let isLast = catchUp.receivePong(payload, from: connection, &context)
        guard isLast else {
            connection.liveness?.recordMessage(at: context.now.monotonic)
            return false
        }
        connection.liveness?.recordAnswer(at: context.now.monotonic)
        receipts.handleProof(connection, &context)
        return isLast
    }

    /// Whether the socket was pinged and has not answered.
    package func awaitsPong(_ slot: Slot) -> Bool { connection(slot)?.openPing != nil }

    /// Records that the socket has acknowledged everything it was sent: anything the feed brought since did not concern
    /// it.
    package func nothingUnacknowledged(of slot: Slot) {
        if let connection = connection(slot) { catchUp.nothingUnacknowledged(of: connection, rows.progress) }
    }

    /// Prepares for a close frame, which follows everything sent so far: its answer acknowledges all of it.
    ///
    /// - Returns: a ping to send before it, if there is time, for clients that do not answer close frames.
    @discardableResult package func isClosing(_ slot: Slot) -> Frame? { acknowledgementPing(for: slot) }

    /// Handles the peer's answer to the close frame.
    package func closeAnswered(_ slot: Slot) {
        guard let connection = connection(slot), let asked = connection.openPing else { return }
        receipts.recordReceipts(provenBy: connection, &context)
        connection.acknowledged?.moveForward(to: asked)
        receipts.handleProof(connection, &context)
    }
}
