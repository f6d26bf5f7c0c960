package import Wire

/// One WebSocket, or one HTTP answer with events, as the hub sees it. A class, because what a message asks of it would otherwise copy all of it.
package final class Connection {
    let slot: Slot
    let version: ProtocolVersion
    /// From the token at the door; joins without a token of their own act by it.
    let claims: Claims
    /// A browser opened it.
    let isPage: Bool
    /// When it was opened, in monotonic milliseconds.
    let began: Int64
    /// Messages that came by it and had a ref, or could not be read; and the highest ref of one.
    var received = 0
    private(set) var lastRef = 0
    var memberships = Memberships()
    /// What it has certainly received; from its first membership on that hears row changes.
    var acknowledged: AcknowledgementState?
    /// What the answer to the last ping will acknowledge; nil once it came.
    var openPing: AcknowledgementState.Acknowledgement?
    /// It had joined nothing when the last sweep came by.
    var wasEmptyAtSweep = false
    /// The hub has ended a channel of it by an error, so that a join may be one that its client repeats.
    var isToRejoin = false
    var limits = SocketLimits()
    /// What its app is doing, if it said so.
    var appState: ReportedAppState?
    /// Somebody has asked what it has received: from then on pings are acknowledged by it, whatever it hears.
    var isAskedForReceipts = false
    /// When its client proved last that it is there; nil where nobody watches its user or device.
    var liveness: SocketLiveness?
    /// Where it reads events from an HTTP answer; nil for a WebSocket.
    var reader: EventReader?
    /// What a backend is told it by; empty where none is.
    var client = ""
    /// Whom it makes count as online.
    var user: Name?
    /// And which of that user's devices.
    var device: Name?

    package init(_ slot: Slot, version: ProtocolVersion, claims: Claims, isPage: Bool, at now: Int64) {
        self.slot = slot
        self.version = version
        self.claims = claims
        self.isPage = isPage
        began = now
    }

    /// A message came by it.
    func receives(_ ref: JSON) {
        var number = 0
        for byte in ref.bytes where byte != UInt8(ascii: "\"") {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte), number < 1_000_000_000_000 else { return }
            number = number * 10 + Int(byte - UInt8(ascii: "0"))
        }
        lastRef = max(lastRef, number)
    }

    /// Whose it is: by the token at the door, or else of a channel that it is in. Nil where none names a user.
    var subject: Name? { claims.subject ?? memberships.lazy.compactMap(\.claims.subject).first }

    /// Its app is on the screen, or does not say.
    var isShown: Bool { appState.map { $0 == .active } ?? true }

    /// The number of the next ping: its answer is the first that acknowledges what is sent from here on.
    var nextPing: Int { max(acknowledged?.latest.serial ?? 0, openPing?.serial ?? 0) + 1 }
}

/// What one connection has joined, in the order of the joins.
struct Memberships: RandomAccessCollection {
    private var all: [Membership] = []
    /// Their `topicHash`es, side by side, once there are many: a socket in a hundred channels looks for one of them within a
    /// few cache lines instead of 25 KB. Empty while there are few, which is what nearly all sockets have.
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

    /// - Returns: whether it was among them.
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
