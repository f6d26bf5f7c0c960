import Wire

/// A join that was refused, row changes that do not come though it was answered with yes, or a member's message that was
/// refused: what the operator is told of it.
package struct JoinFailure: Sendable, Equatable {
    package enum Subject: Sendable {
        case subscription
        case message
    }

    /// The metrics' label: few, and none of it from clients.
    package enum Reason: String, CaseIterable, Sendable {
        /// The token that the join brought, or the socket's, which has expired.
        case token
        /// A policy says no, or a backend took the user out of the channel for a while.
        case unauthorized
        case limit
        /// What the client asked for is none that is served, or not of that form.
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
    /// What the client was told, or would have been if it had waited for an answer.
    package let sentence: String

    init(_ refusal: Refusal, of subject: Subject = .subscription) {
        self.subject = subject
        reason = Self.reason(for: refusal)
        sentence = refusal.message
    }

    /// Of row changes, once the join was answered.
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
