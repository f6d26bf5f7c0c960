/// What hubs of a cluster ask each other. A number is never given another meaning; a hub that does not know one says so.
package enum PeerSubject: UInt8, Sendable {
    /// Where clients of the asked hub are that look like some who joined the asking one (`RecoveryKey`).
    case sessions = 1
    /// Who is present on the asked hub, piece by piece.
    case presence = 2
    /// What backends ask of all hubs (`ServerQuestion`).
    case backends = 3
    /// How many sockets users have on the asked hub, part by part.
    case users = 4
}

/// What one hub answered.
package struct PeerAnswer: Sendable, Equatable {
    /// Its name.
    package let hub: String
    /// Nil where there is no answer: the hub is not there, was silent for too long or does not know the subject, or too many
    /// questions are open already.
    package let body: [UInt8]?

    package init(hub: String, body: [UInt8]?) {
        self.hub = hub
        self.body = body
    }
}

/// Asks other hubs of the cluster. From any thread; must not wait.
package protocol PeerAsking: Sendable {
    /// - Parameters:
    ///   - hubs: their names; nil for all that are there.
    ///   - patience: for how long they are waited for.
    ///   - done: called once, and after `patience` at the latest, on a thread that it must not hold up: with one answer for each
    ///     hub that was asked, in no order.
    func ask(
        _ subject: PeerSubject, _ body: [UInt8], of hubs: [String]?, within patience: Duration,
        then done: @escaping @Sendable ([PeerAnswer]) -> Void)
}

/// Answers what other hubs ask about one subject. Called on a thread that it must not hold up.
package protocol PeerAnswering: Sendable {
    /// - Parameters:
    ///   - question: another hub made it, maybe one of another version: it may be anything.
    ///   - reply: to be called once, from any thread; nil where there is nothing that could be said. Up to 4,000,000 bytes.
    func answer(_ question: [UInt8], of hub: String, reply: @escaping @Sendable ([UInt8]?) -> Void)
}
