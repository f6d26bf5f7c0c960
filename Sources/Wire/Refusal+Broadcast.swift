/// How a broadcast of a channel with `ack` is refused: with the original's code, which clients compare as a whole (supabase/realtime
/// 2.174: `unauthorized`, `payload_size_exceeded`, `rls_policy_error`, `query_canceled`, `unable_to_connect_to_project`, …), and with the sentence
/// that says what to do, which the original does not have.
extension Refusal {
    /// The JSON object that the error reply carries.
    package var broadcastResponse: [UInt8] {
        JSONWriter.object {
            $0.member("error", broadcastCode)
            $0.member("reason", reason)
        }
    }

    /// The original's code where it has one; else our own, as the sentence begins with it.
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

/// What a policy on `realtime.messages` met in place of an answer.
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
