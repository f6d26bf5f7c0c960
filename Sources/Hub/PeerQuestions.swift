/// Subjects on which hubs of a cluster ask each other. A number never changes its meaning; a hub that does not know one
/// says so.
package enum PeerSubject: UInt8, Sendable {
    /// The positions of the asked hub's clients that look like some that joined the asking one (`RecoveryKey`).
    case sessions = 1
    /// The asked hub's presences, piece by piece.
    case presence = 2
    /// Questions of backends to all hubs (`ServerQuestion`).
    case backends = 3
    /// The numbers of users' sockets on the asked hub, part by part.
    case users = 4
}

/// One hub's answer.
package struct PeerAnswer: Sendable, Equatable {
    /// The hub's name.
    package let hub: String
    /// Nil if there is no answer: the hub is absent, was silent for too long or does not know the subject, or too many
    /// questions are open already.
    package let body: [UInt8]?

    package init(hub: String, body: [UInt8]?) {
        self.hub = hub
        self.body = body
    }
}

/// Asks other hubs of the cluster. Called from any thread; must not block.
package protocol PeerAsking: Sendable {
    /// - Parameters:
    ///   - hubs: their names; nil for all present ones.
    ///   - patience: how long to wait for them.
    ///   - done: called once, and after `patience` at the latest, on a thread that it must not block: with one answer
    ///     for each hub that was asked, in no particular order.
    func askHubs(
        _ subject: PeerSubject, _ body: [UInt8], of hubs: [String]?, within patience: Duration,
        then done: @escaping @Sendable ([PeerAnswer]) -> Void)
}

/// Answers other hubs' questions about one subject. Called on a thread that it must not block.
package protocol PeerAnswering: Sendable {
    /// - Parameters:
    ///   - question: made by another hub, perhaps of another version: it may be anything.
    ///   - reply: to be called once, from any thread; nil if there is no answer. Up to 4,000,000 bytes.
    func answerQuestion(_ question: [UInt8], of hub: String, reply: @escaping @Sendable ([UInt8]?) -> Void)
}
