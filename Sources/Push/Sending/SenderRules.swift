/// A client's configuration as far as decisions depend on it; times in milliseconds.
struct SenderRules {
    var queue: Int
    var connections: Int
    var inFlight: Int
    var answerTimeout: Int64
    var pingTimeout: Int64
    var idlePing: Int64
    var waitsWhenKeyIsRefused: Bool

    /// Requests without an answer, one after the other, after which a connection takes no more (DESIGN's rule for APNs).
    static let timeoutsToRetire = 2
    /// How often one goes again that left and was not answered.
    static let resends = 5
    /// How often one goes again because of its provider token or its connection, before that counts as the key's fault.
    static let rejections = 2
    /// How often one may come back unseen before it waits a little.
    static let hastyReturns = 3

    init(_ configuration: APNsConfiguration) {
        queue = max(1, configuration.queue)
        connections = max(1, configuration.connections)
        inFlight = max(1, configuration.inFlight)
        answerTimeout = configuration.answerTimeout.milliseconds
        pingTimeout = configuration.pingTimeout.milliseconds
        idlePing = configuration.idlePing.milliseconds
        waitsWhenKeyIsRefused = configuration.waitsWhenKeyIsRefused
    }

    /// How long a connection that owes answers may be silent before it is asked.
    var silence: Int64 { answerTimeout / 2 }
}

extension Duration {
    var milliseconds: Int64 { components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000 }
}
