import Synchronization
package import Wire

/// What one socket has certainly received, shared by all its memberships.
///
/// A pong is the acknowledgement: WebSocket libraries read in order and answer a ping when they come to it (RFC 6455, section
/// 5.5.3), through proxies, too. What the peer's kernel acknowledged says less: a proxy's kernel acknowledges for the
/// client, and bytes that lie unread in a receive buffer when the client gives the socket up are acknowledged as well.
///
/// Safe from any thread: sessions of this socket are looked at by joins on other loops.
package final class AcknowledgementState: Sendable {
    struct Acknowledgement {
        /// Counts the pings, so that a membership can tell whether one came after its changes began to come live.
        var serial = 0
        /// All that the feed handed on up to this mark has arrived.
        var mark: Int
        /// The hub's clock, in monotonic milliseconds, when the ping was sent that was answered: the socket lived then.
        var at = Int64.min
        /// The same moment, as `SessionRegistry.moment` counts them.
        var moment = 0
    }

    private let state: Mutex<Acknowledgement>
    /// Where to ask for another.
    let socket: SocketPlace

    init(mark: Int, of socket: SocketPlace) {
        state = Mutex(Acknowledgement(mark: mark))
        self.socket = socket
    }

    var latest: Acknowledgement { state.withLock { $0 } }

    func advance(to acknowledgement: Acknowledgement) {
        state.withLock { if acknowledgement.serial > $0.serial { $0 = acknowledgement } }
    }
}

/// A socket of one of the loops, as long as it is open; after that perhaps another one.
package struct SocketPlace: Sendable, Hashable {
    package let slot: Slot
    /// Small, as each user has a place.
    private let number: Int32

    package var loop: Int { Int(number) }

    package init(loop: Int, slot: Slot) {
        number = Int32(truncatingIfNeeded: loop)
        self.slot = slot
    }
}

/// What sockets are asked, and answered.
extension CatchUp {
    /// The socket's state, made for the first membership that hears row changes or has history.
    func acknowledged(of connection: Connection, _ progress: FeedProgress, _ hub: inout HubContext)
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

    /// A ping that acknowledges, when it is answered, all that was sent to the socket before it. Nil where nobody needs to
    /// know.
    package func ping(_ connection: Connection, _ progress: FeedProgress, _ hub: inout HubContext) -> Frame? {
        // Who is asked whether somebody is there, or has a message, is asked, too, where no change and no history ever comes.
        if connection.acknowledged == nil, connection.liveness != nil || connection.isAskedForReceipts {
            _ = acknowledged(of: connection, progress, &hub)
        }
        guard connection.acknowledged != nil else { return nil }
        let serial = connection.nextPing
        connection.openPing = AcknowledgementState.Acknowledgement(
            serial: serial, mark: progress.mark, at: hub.now.monotonic, moment: sessions.moment())
        connection.liveness?.isAsked(at: hub.now.monotonic)
        for membership in connection.memberships { membership.recovery?.reaches(acknowledgedBy: serial) }
        return .ping(String(serial))
    }

    /// Whether it was the last ping that the socket was sent.
    func isAnswered(_ connection: Connection, by payload: some Sequence<UInt8>) -> Bool {
        connection.openPing.map { payload.elementsEqual(String($0.serial).utf8) } ?? false
    }

    /// The socket answered a ping.
    ///
    /// - Returns: whether it was the last that it was asked.
    package func pong(_ payload: some Sequence<UInt8>, from connection: Connection, _ hub: inout HubContext) -> Bool {
        guard let asked = connection.openPing, isAnswered(connection, by: payload) else { return false }
        connection.openPing = nil
        connection.acknowledged?.advance(to: asked)
        for membership in connection.memberships { membership.recovery?.isAcknowledged(by: asked.serial) }
        lookAtArrivals(&hub)
        return true
    }

    /// The socket has acknowledged all that it was sent: whatever the feed brought since did not concern it.
    func nothingUnacknowledged(of connection: Connection, _ progress: FeedProgress) {
        guard let acknowledged = connection.acknowledged, connection.openPing == nil else { return }
        let last = acknowledged.latest
        // It says nothing of whether the socket lives.
        if last.mark < progress.mark {
            acknowledged.advance(
                to: .init(serial: last.serial + 1, mark: progress.mark, at: last.at, moment: last.moment))
        }
    }
}

/// Acknowledgements, as the gateway asks for them and hears of them.
extension Hub {
    /// A ping that acknowledges, when it is answered, all that was sent to the socket before it. Nil where nobody needs to
    /// know.
    package func acknowledgementPing(for slot: Slot) -> Frame? {
        guard let connection = connection(slot) else { return nil }
        if connection.acknowledged == nil, receipts.areOwed(by: connection) {
            _ = catchUp.acknowledged(of: connection, rows.progress, &context)
        }
        return catchUp.ping(connection, rows.progress, &context)
    }

    /// Whether the socket was sent rows whose receipts are written back, and is neither asked for their proof nor has given it.
    package func owesReceipts(_ slot: Slot) -> Bool {
        guard receipts.areWritten, let connection = connection(slot), connection.openPing == nil else { return false }
        return receipts.areOwed(by: connection)
    }

    /// Whether somebody needs to know of a socket, every few seconds, whether its client is there.
    package func isWatched(_ slot: Slot) -> Bool { connection(slot)?.liveness != nil }

    /// The socket answered a ping.
    ///
    /// - Returns: whether it was the last that it was asked.
    @discardableResult package func pong(_ payload: some Sequence<UInt8>, from slot: Slot) -> Bool {
        guard let connection = connection(slot) else { return false }
        if receipts.areWritten, catchUp.isAnswered(connection, by: payload) {
            receipts.write(provenBy: connection, &context)
        }
        let isLast = catchUp.pong(payload, from: connection, &context)
        guard isLast else {
            connection.liveness?.isHeard(at: context.now.monotonic)
            return false
        }
        connection.liveness?.answers(at: context.now.monotonic)
        receipts.proved(connection, &context)
        return isLast
    }

    /// Whether the socket was pinged and has not answered.
    package func awaitsPong(_ slot: Slot) -> Bool { connection(slot)?.openPing != nil }

    /// The socket has acknowledged all that it was sent: whatever the feed brought since did not concern it.
    package func nothingUnacknowledged(of slot: Slot) {
        if let connection = connection(slot) { catchUp.nothingUnacknowledged(of: connection, rows.progress) }
    }

    /// A close frame follows all that was sent so far: its answer acknowledges it.
    ///
    /// - Returns: a ping to be sent before it, where there is time, for clients that do not answer close frames.
    @discardableResult package func isClosing(_ slot: Slot) -> Frame? { acknowledgementPing(for: slot) }

    /// The peer answered the close frame.
    package func closeAnswered(_ slot: Slot) {
        guard let connection = connection(slot), let asked = connection.openPing else { return }
        receipts.write(provenBy: connection, &context)
        connection.acknowledged?.advance(to: asked)
        receipts.proved(connection, &context)
    }
}
