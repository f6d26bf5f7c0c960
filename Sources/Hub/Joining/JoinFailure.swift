import Wire

/// A failure reported to the operator: a refused join, row changes that fail after an accepted join, or a refused
/// message.
package struct JoinFailure: Sendable, Equatable {
    package enum Subject: Sendable {
        case subscription
        case message
    }

    /// The label in the metrics: few values, none of them from clients.
    package enum Reason: String, CaseIterable, Sendable {
        /// The token of the join, or the socket's, is invalid or has expired.
        case token
        /// A policy says no, or a backend barred the user from the channel for a while.
        case unauthorized
        case limit
        /// The request is malformed, or asks for something that is not served.
        case request
        /// Postgres is away, or a policy failed.
        case database
        /// The table is not watched, the role lacks a right, a filter is wrong.
        case rowChanges = "row_changes"
        case stream
        case restarting
    }

    package let subject: Subject
    package let reason: Reason
    /// The sentence that the client was told, or would have been if it had waited for an answer.
    package let sentence: String

    init(_ refusal: Refusal, of subject: Subject = .subscription) {
        self.subject = subject
        reason = Self.reason(for: refusal)
        sentence = refusal.message
    }

    /// A failure of row changes after the join was answered.
    init(rowChanges sentence: String) {
        subject = .subscription
        reason = .rowChanges
        self.sentence = sentence
    }

    private static func reason(for refusal: Refusal) -> Reason {
        switch refusal {
        case .apiKeyMissing, .tokenExpired, .claimsMissing, .expirationInvalid, .tokenMalformed, .signatureInvalid,
            .keyUnknown, .issuerRefused, .audienceRefused, .tokenNotYetValid, .signer, .roleInvalid:
            .token
        case .unauthorized, .readRevoked, .writeUnauthorized, .trackUnauthorized, .privateOnly, .removed: .unauthorized
        case .over, .writesPending, .presenceListFull: .limit
        case .databaseUnavailable, .policyFailed, .channelPolicyFailed, .changesLost, .replayFailed: .database
        case .invalidBinding, .changesTimeout: .rowChanges
        case .stream: .stream
        case .restarting: .restarting
        case .topicNameRequired, .unmatchedTopic, .replayNotAllowed, .replayInvalid, .presencePayloadNotAMap,
            .presenceEventUnknown, .appStateUnknown, .summaryReserved, .persistTTLInvalid:
            .request
        }
    }
}
