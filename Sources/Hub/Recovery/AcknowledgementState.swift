import Synchronization
package import Wire

/// What one socket has certainly received, shared by all its memberships.
///
/// A pong is the proof: WebSocket libraries read in order and answer a ping when they come to it (RFC 6455, section
/// 5.5.3), through proxies, too. What the peer's kernel acknowledged proves less: a proxy's kernel acknowledges for the
/// client, and bytes that lie unread in a receive buffer when the client gives the socket up are acknowledged as well.
package final class Lifeline: Sendable {
    struct Proof {
        /// Counts the proofs, so that a membership can tell whether one came after it took its seat.
        var serial = 0
        /// All that the feed handed on up to this mark has arrived.
        var mark: Int
        /// The hub's clock, in monotonic milliseconds, when the last was asked that was answered: the socket lived then.
        var at = Int64.min
        /// The same moment, as `RecoveryBook.moment` counts them.
        var moment = 0
    }

    private let latest: Mutex<Proof>
    /// Where to ask for another.
    let socket: SocketPlace

    init(mark: Int, of socket: SocketPlace) {
        latest = Mutex(Proof(mark: mark))
        self.socket = socket
    }

    var proof: Proof { latest.withLock { $0 } }

    func advance(to proof: Proof) {
        latest.withLock { if proof.serial > $0.serial { $0 = proof } }
    }
}

/// A socket of one of the loops, as long as it is open; after that perhaps another one.
package struct SocketPlace: Sendable, Equatable {
    package let loop: Int
    package let slot: Slot
}

/// Proofs of what sockets have received; see `Lifeline`.
extension Hub {
    /// The socket's lifeline, made for the first membership that hears row changes.
    func lifeline(of connection: Connection) -> Lifeline {
        if let lifeline = connection.lifeline { return lifeline }
        let lifeline = Lifeline(mark: mark, of: SocketPlace(loop: loop, slot: connection.slot))
        connection.lifeline = lifeline
        return lifeline
    }

    /// A ping that proves, when it is answered, all that was sent to the socket before it. Nil where nobody needs to know.
    package func proofPing(for slot: Slot) -> Frame? {
        guard let connection = connection(slot), connection.lifeline != nil else { return nil }
        let serial = connection.nextProof
        connection.asked = Lifeline.Proof(
            serial: serial, mark: mark, at: latest.monotonic, moment: book.moment())
        for membership in connection.memberships { membership.recovery?.reaches(provenBy: serial) }
        return .ping(String(serial))
    }

    /// The socket answered a ping.
    ///
    /// - Returns: whether it was the last proof that it was asked for.
    @discardableResult package func pong(_ payload: some Sequence<UInt8>, from slot: Slot) -> Bool {
        guard let connection = connection(slot), let asked = connection.asked,
            payload.elementsEqual(String(asked.serial).utf8)
        else { return false }
        connection.asked = nil
        connection.lifeline?.advance(to: asked)
        for membership in connection.memberships { membership.recovery?.isProven(by: asked.serial) }
        // Once for all that answer in this turn.
        if !arrivals.isEmpty { context.schedule(.arrivals, at: latest.monotonic) }
        return true
    }

    /// Whether the socket was asked for a proof and has not answered.
    package func isAskedForProof(_ slot: Slot) -> Bool { connection(slot)?.asked != nil }

    /// The socket has nothing that is not proven: whatever the feed brought since did not concern it.
    package func nothingUnproven(of slot: Slot) {
        guard let connection = connection(slot), let lifeline = connection.lifeline, connection.asked == nil else {
            return
        }
        let proof = lifeline.proof
        // It says nothing of whether the socket lives.
        if proof.mark < mark {
            lifeline.advance(to: .init(serial: proof.serial + 1, mark: mark, at: proof.at, moment: proof.moment))
        }
    }

    /// A close frame follows all that was sent so far: its answer proves it.
    package func isClosing(_ slot: Slot) {
        _ = proofPing(for: slot)
    }

    /// The peer answered the close frame.
    package func closeAnswered(_ slot: Slot) {
        guard let connection = connection(slot), let asked = connection.asked else { return }
        connection.lifeline?.advance(to: asked)
    }
}
