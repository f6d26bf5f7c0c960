import Synchronization

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
