package import Hub

/// The counters of a client since its creation, and its present state.
package struct PushStatistics: Sendable, Equatable {
    package var delivered = 0
    package var unregistered = 0
    /// Notifications that were refused for good, including those with a bad token.
    package var failed = 0
    /// Refusals by reason, including those after which a notification was sent again. Bounded: reasons that Apple does not document are
    /// counted as `other`.
    package var refused: [String: Int] = [:]
    package var superseded = 0
    package var expired = 0
    package var overflow = 0
    package var tooLarge = 0
    package var unanswered = 0
    package var stopped = 0
    /// Requests that were sent again, for any reason.
    package var retries = 0
    /// Requests that left and were never answered: those sent again may have arrived twice, under the same id.
    package var ambiguous = 0
    package var connectionsOpened = 0
    /// Connections that failed to open.
    package var connectionFailures = 0
    /// Connections abandoned after requests without an answer.
    package var connectionsRetired = 0
    /// GOAWAY frames received.
    package var goAways = 0
    package var tokensMinted = 0
    /// Tokens found to belong to another environment than their target says; each notification counts.
    package var environmentsFound = 0
    /// The only environment that the key is valid for, if APNs said so.
    package var keyEnvironment: PushEnvironment?

    /// Notifications that wait now.
    package var queued = 0
    /// Requests without an answer yet.
    package var inFlight = 0
    /// The provider token's age, in seconds; nil if there is none yet.
    package var providerTokenAge: Int?
    /// The reason why only one push a minute is sent, by server; empty if all is well.
    package var circuitsOpen: [String: String] = [:]

    package init() {}
}

extension PushStatistics {
    mutating func count(_ outcome: PushOutcome) {
        switch outcome {
        case .delivered: delivered += 1
        case .unregistered: unregistered += 1
        case .refused, .badToken: failed += 1
        case .superseded: superseded += 1
        case .expired: expired += 1
        case .overflow: overflow += 1
        case .tooLarge: tooLarge += 1
        case .unanswered: unanswered += 1
        case .stopped: stopped += 1
        }
    }
}
