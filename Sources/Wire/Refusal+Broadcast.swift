/// Refusals of a broadcast to a channel with `ack`: the original's code, which clients compare as a whole
/// (supabase/realtime 2.174: `unauthorized`, `payload_size_exceeded`, `rls_policy_error`, `query_canceled`,
/// `unable_to_connect_to_project`, …), and the sentence that says what to do, which the original lacks.
extension Refusal {
    /// The JSON object carried by the error reply.
    package var broadcastResponse: [UInt8] {
        JSONWriter.object {
            $0.writeMember("error", broadcastCode)
            $0.writeMember("reason", reason)
        }
    }

    /// The original's code if it has one; otherwise our own, with which the sentence begins.
    package var broadcastCode: String {
        switch self {
        case .unauthorized, .readRevoked, .writeUnauthorized, .trackUnauthorized, .privateOnly, .removed: "unauthorized"
        case .databaseUnavailable: "unable_to_connect_to_project"
        case .channelPolicyFailed(.error): "rls_policy_error"
        case .channelPolicyFailed(.canceled): "query_canceled"
        case .persistTTLInvalid: "invalid_persist_ttl"
        case .unmatchedTopic: "unmatched_topic"
        default: String(reason.prefix { $0 != ":" })
        }
    }
}

/// The failure of a policy on `realtime.messages`.
package enum PolicyFault: Sendable, Equatable, CaseIterable {
    case error
    case canceled

    var sentence: String {
        switch self {
        case .error: "A policy on realtime.messages failed; correct the policy that the hub's log names"
        case .canceled: "The policies on realtime.messages took too long; try again later"
        }
    }
}
