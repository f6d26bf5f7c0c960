package import Wire

/// The hub's view of one WebSocket, or of one HTTP response with events. A class, because otherwise each message would
/// copy all of it.
package final class Connection {
    let slot: Slot
    let version: ProtocolVersion
    /// From the token at the door; joins without a token of their own act under these.
    let claims: Claims
    /// A browser opened it.
    let isPage: Bool
    /// When it was opened, in monotonic milliseconds.
    let began: Int64
    /// Messages that had a ref or could not be read, and the highest ref among them.
    var received = 0
    private(set) var lastRef = 0
    var memberships = Memberships()
    /// Proof of what the client has received; kept from the first membership that hears row changes or has history.
    var acknowledged: AcknowledgementState?
    /// The acknowledgement that the answer to the last ping will make; nil once answered.
    var openPing: AcknowledgementState.Acknowledgement?
    /// The connection had no channels at the last sweep.
    var wasEmptyAtSweep = false
    /// The hub has ended one of its channels with an error, so that a join may be a repeated one.
    var isToRejoin = false
    var limits = SocketLimits()
    /// The state of its app, if reported.
    var appState: ReportedAppState?
    /// Its receipts have been asked about: from then on it acknowledges pings, whatever it hears.
    var isAskedForReceipts = false
    /// When its client last proved to be alive; nil if neither its user nor its device is watched.
    var liveness: SocketLiveness?
    /// The state of a connection that reads events from an HTTP response; nil for a WebSocket.
    var reader: EventReader?
    /// Its identifier for a backend; empty if no backend is told.
    var client = ""
    /// The user that it keeps online.
    var user: Name?
    /// The user's device that it keeps online.
    var device: Name?

    package init(_ slot: Slot, version: ProtocolVersion, claims: Claims, isPage: Bool, at now: Int64) {
        self.slot = slot
        self.version = version
        self.claims = claims
        self.isPage = isPage
        began = now
    }

    /// Records the ref of a message.
    func recordRef(_ ref: JSON) {
        var number = 0
        for byte in ref.bytes where byte != UInt8(ascii: "\"") {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte), number < 1_000_000_000_000 else { return }
            number = number * 10 + Int(byte - UInt8(ascii: "0"))
        }
        lastRef = max(lastRef, number)
    }

    /// Its user: from the token at the door, or else from a channel that it is in. Nil if neither names one.
    var subject: Name? { claims.subject ?? memberships.lazy.compactMap(\.claims.subject).first }

    /// Its app is on the screen, or does not report its state.
    var isShown: Bool { appState.map { $0 == .active } ?? true }

    /// The number of the next ping: the first whose answer acknowledges what is sent from now on.
    var nextPing: Int { max(acknowledged?.latest.serial ?? 0, openPing?.serial ?? 0) + 1 }
}

/// The memberships of one connection, in the order of its joins.
struct Memberships: RandomAccessCollection {
    private var all: [Membership] = []
    /// Their `topicHash`es, side by side, once there are many: a socket in a hundred channels finds one of them within
    /// a few cache lines instead of 25 KB. Empty while there are few, as for nearly all sockets.
    private var hashes: [Int] = []
    private static let few = 8

    var startIndex: Int { 0 }
    var endIndex: Int { all.count }

    subscript(position: Int) -> Membership { all[position] }

    mutating func append(_ membership: Membership) {
        all.append(membership)
        if !hashes.isEmpty {
            hashes.append(membership.topicHash)
        } else if all.count > Self.few {
            hashes = all.map(\.topicHash)
        }
    }

    /// - Returns: whether it was there.
    mutating func remove(_ membership: Membership) -> Bool {
        guard let position = position(of: membership.topicHash, where: { $0 === membership }) else { return false }
        if !hashes.isEmpty { hashes.remove(at: position) }
        all.remove(at: position)
        return true
    }

    subscript(topic: String) -> Membership? {
        position(of: ChannelKey.hash(ofTopic: topic)) { $0.channel.key.topic.hasSameBytes(as: topic) }.map { all[$0] }
    }

    subscript(channel: LocalChannel) -> Membership? {
        position(of: channel.topicHash) { $0.channel === channel }.map { all[$0] }
    }

    private func position(of hash: Int, where isMeant: (Membership) -> Bool) -> Int? {
        guard hashes.isEmpty else { return hashes.indices.first { hashes[$0] == hash && isMeant(all[$0]) } }
        return all.firstIndex { $0.topicHash == hash && isMeant($0) }
    }
}

/// A connection's place in its loop's tables: small, dense, used again after the connection is gone.
package typealias Slot = Int32
