/// The reason for a refusal, with the text that clients know from the original (wire-protocol A1, A9) and the client's
/// next step. `docs/errors.md` lists them; a test compares the two.
package enum Refusal: Error, Sendable, Equatable {
    case apiKeyMissing
    case tokenExpired(secondsAgo: Int)
    case claimsMissing
    case expirationInvalid
    case tokenMalformed
    case signatureInvalid
    /// The token names a key that the hub does not have, perhaps not yet.
    case keyUnknown
    case issuerRefused
    case audienceRefused
    case tokenNotYetValid
    case signer(String)
    case topicNameRequired
    case unmatchedTopic
    case unauthorized(topic: String)
    case readRevoked(topic: String)
    case writeUnauthorized(topic: String)
    case trackUnauthorized(topic: String)
    /// Too many messages wait for a decision whether they may be sent.
    case writesPending
    case replayNotAllowed
    case replayInvalid
    case replayFailed
    case privateOnly
    /// A limit is reached; its value is in the unit of the setting.
    case over(Limit, Int)
    case databaseUnavailable
    /// A policy raised an error on missed changes, so that it is unknown whether the client may see them.
    case policyFailed
    /// A policy on `realtime.messages` failed, so that the client's rights are unknown.
    case channelPolicyFailed(PolicyFault)
    /// Changes were deleted from the outbox before the hub had read them.
    case changesLost
    case restarting
    case presencePayloadNotAMap
    case presenceEventUnknown
    case appStateUnknown
    /// The event is reserved for the hub.
    case summaryReserved
    /// A message is to be stored with an invalid time to live.
    case persistTTLInvalid
    /// A channel's list is full by this bound, which has this value. A member that is not listed is counted all the
    /// same.
    case presenceListFull(PresenceBound, Int, isCounted: Bool)
    case roleInvalid
    case invalidBinding(String)
    /// A join waited for its row changes, as it requested, and it is still unknown whether they are served.
    case changesTimeout(milliseconds: Int)
    case stream(StreamProblem)
    /// A backend removed the user from the channel; for this many more seconds the user is barred.
    case removed(topic: String, seconds: Int?)

    /// The bounds of presence lists.
    package enum PresenceBound: Sendable, CaseIterable {
        case members
        case bytes
        /// The total bytes of all channels' lists.
        case total

        func sentence(_ value: Int) -> String {
            switch self {
            case .members: "The list of this channel is full at \(value) members (presence.listed_members)"
            case .bytes: "The list of this channel is full at \(value) bytes (presence.listed_bytes)"
            case .total: "The lists of all channels are full at \(value) bytes (presence.total_bytes)"
            }
        }
    }

    /// The client's next step.
    package enum NextAction: String, Sendable {
        /// Try again later with the same request.
        case retry
        /// Get another token, then try again.
        case refreshToken = "refresh token"
        /// Change the request; repeating it cannot succeed.
        case giveUp = "give up"
    }

    /// The `response.reason` of an error reply.
    package var reason: String {
        switch self {
        case .apiKeyMissing: "API key is missing"
        case .tokenExpired, .claimsMissing, .expirationInvalid, .issuerRefused, .audienceRefused, .tokenNotYetValid,
            .roleInvalid:
            "InvalidJWTToken: \(message)"
        case .tokenMalformed: "MalformedJWT: \(message)"
        case .signatureInvalid: "JwtSignatureError: \(message)"
        case .keyUnknown, .signer: "JwtSignerError: \(message)"
        case .topicNameRequired: "TopicNameRequired: \(message)"
        case .unauthorized, .readRevoked, .writeUnauthorized, .trackUnauthorized, .removed: "Unauthorized: \(message)"
        case .writesPending: "AuthorizationPending: \(message)"
        case .replayNotAllowed, .replayInvalid, .replayFailed: "UnableToReplayMessages: \(message)"
        case .privateOnly: "PrivateOnly: \(message)"
        case .over(let limit, _): "\(limit.code): \(message)"
        case .databaseUnavailable: "UnableToConnectToProject: \(message)"
        case .policyFailed, .channelPolicyFailed(.error): "RlsPolicyError: \(message)"
        case .channelPolicyFailed(.canceled): "QueryCanceled: \(message)"
        case .changesLost: "ChangesLost: \(message)"
        case .restarting: "RealtimeRestarting: \(message)"
        // The original's code for row changes that cannot be served as requested; Dart's realtime_client 3 does not
        // rejoin after it.
        case .invalidBinding: "RealtimeDisabledForConfiguration: \(message)"
        case .changesTimeout: "PostgresChangesSubscribeTimeout: \(message)"
        case .presenceListFull: "PresenceListFull: \(message)"
        case .summaryReserved: "ReservedEvent: \(message)"
        case .persistTTLInvalid: "InvalidPersistTtl: \(message)"
        case .stream(let problem): "\(problem.code): \(message)"
        case .unmatchedTopic, .presencePayloadNotAMap, .presenceEventUnknown, .appStateUnknown: message
        }
    }

    /// The sentence alone, as used in HTTP refusals and `system` messages.
    package var message: String {
        switch self {
        case .apiKeyMissing: "API key is missing"
        case .tokenExpired(let seconds): "Token has expired \(seconds) seconds ago"
        case .claimsMissing: "Fields `role` and `exp` are required in JWT"
        case .expirationInvalid: "Token expiration time is invalid"
        case .tokenMalformed: "The token provided is not a valid JWT"
        case .signatureInvalid: "Failed to validate JWT signature"
        case .keyUnknown: "Failed to generate JWT signer, check your JWT secret or JWKS configuration"
        case .issuerRefused: "The issuer (iss) of the token is not accepted here"
        case .audienceRefused: "The audience (aud) of the token is not this service"
        case .tokenNotYetValid: "Token is not valid yet"
        case .signer(let detail): detail
        case .topicNameRequired: "You must provide a topic name"
        case .unmatchedTopic: "unmatched topic"
        case .unauthorized(let topic): "You do not have permissions to read from this Channel topic: \(topic)"
        case .readRevoked(let topic): "You no longer have permission to read from this Channel topic: \(topic)"
        case .writeUnauthorized(let topic): "You do not have permissions to write to this Channel topic: \(topic)"
        case .trackUnauthorized(let topic):
            "You do not have permissions to track presence in this Channel topic: \(topic)"
        case .writesPending: "Too many messages wait for the permission to write to this Channel"
        case .replayNotAllowed: "Replay is not allowed for public channels"
        case .replayInvalid: "Replay params are not valid"
        case .replayFailed: "Realtime was unable to replay messages"
        case .privateOnly: "This project only allows private channels"
        case .over(let limit, let value): limit.sentence(value)
        case .databaseUnavailable: "Realtime was unable to connect to the project database"
        case .policyFailed:
            "A policy failed on changes that you missed; join again, and if it happens again, correct the policy that "
                + "the hub's log names"
        case .channelPolicyFailed(let fault): fault.sentence
        case .changesLost: "Changes were deleted before they were delivered; load the data again"
        case .restarting: "Realtime is restarting, please standby"
        case .presencePayloadNotAMap: "Presence track payload must be a map"
        case .presenceEventUnknown: "Presence event must be track or untrack"
        case .appStateUnknown: "The state of the app must be active, inactive or background"
        case .summaryReserved:
            "Broadcasts of `summary` and `end` in a live-activity channel come from the hub alone; choose another event"
        case .persistTTLInvalid: "The ttl of persist must be a whole number of seconds from 1 to 259200"
        case .presenceListFull(let bound, let value, let isCounted):
            bound.sentence(value) + (isCounted ? "; you are counted but not shown" : "; you are shown as before")
        case .roleInvalid:
            "The claim `role` of the token has a character U+0000, which no role of Postgres has; issue another token"
        case .invalidBinding(let detail): detail
        case .changesTimeout(let milliseconds):
            "Timed out after \(milliseconds)ms waiting for the postgres_changes subscription"
        case .stream(let problem): problem.sentence
        case .removed(let topic, let seconds):
            "You were removed from this Channel topic: \(topic)"
                + (seconds.map { "; you may join again in \($0) seconds" } ?? "")
        }
    }

    package var nextAction: NextAction {
        switch self {
        case .tokenExpired, .claimsMissing, .expirationInvalid, .tokenMalformed, .signatureInvalid, .apiKeyMissing,
            .issuerRefused, .audienceRefused, .roleInvalid:
            .refreshToken
        case .keyUnknown, .tokenNotYetValid, .databaseUnavailable, .changesLost, .policyFailed, .channelPolicyFailed,
            .restarting,
            .writesPending, .replayFailed, .presenceListFull, .changesTimeout:
            .retry
        case .signer, .topicNameRequired, .unmatchedTopic, .unauthorized, .readRevoked, .writeUnauthorized,
            .trackUnauthorized, .replayNotAllowed, .replayInvalid, .privateOnly, .presencePayloadNotAMap,
            .presenceEventUnknown, .appStateUnknown, .summaryReserved, .persistTTLInvalid, .invalidBinding:
            .giveUp
        case .over(let limit, _): limit.nextAction
        case .stream(let problem): problem.nextAction
        case .removed(_, let seconds): seconds == nil ? .giveUp : .retry
        }
    }

    /// The equivalent HTTP status code (RFC 9110, section 15).
    package var status: Int {
        switch self {
        case .unauthorized, .readRevoked, .writeUnauthorized, .trackUnauthorized, .privateOnly, .summaryReserved,
            .removed:
            403
        default:
            switch nextAction {
            case .refreshToken: 401
            case .retry: 503
            case .giveUp: 400
            }
        }
    }

    /// The payload of the `phx_error` that ends a channel. realtime-js passes the reason to its user if `code` is a
    /// number; otherwise all it says is "transport failure".
    package var ending: [UInt8] {
        Array("{\"code\":\(status),\"reason\":".utf8) + JSONString.encode(reason) + [UInt8(ascii: "}")]
    }

    /// The JSON object carried by an error reply.
    package var response: [UInt8] {
        Array("{\"reason\":".utf8) + JSONString.encode(reason) + [UInt8(ascii: "}")]
    }
}

/// A limit that the hub enforces with an error; its name is shared by its setting, its errors and its metric.
///
/// The original has codes for some of them; its clients recognize those as prefixes (PyPI realtime waits 30 s before
/// rejoining after a reason that starts with `ConnectionRateLimitReached`, `ChannelRateLimitReached` or
/// `ClientJoinRateLimitReached`), so the sentence follows the code.
package enum Limit: String, Sendable, CaseIterable {
    case connections
    case connectionsPerAddress = "connections_per_address"
    case connectionsPerUser = "connections_per_user"
    case channelsPerConnection = "channels_per_connection"
    case filtersPerChannel = "filters_per_channel"
    case patternsPerConnection = "patterns_per_connection"
    case messageBytes = "message_bytes"
    case payloadBytes = "payload_bytes"
    case joinsPerSecond = "joins_per_second"
    case presencePerSecond = "presence_per_second"
    case presenceBytes = "presence_bytes"

    /// The name of its setting, as in `config/roost.yaml`.
    package var setting: String { "limits." + rawValue }

    /// The prefix of `response.reason`.
    var code: String {
        switch self {
        case .connections, .connectionsPerAddress, .connectionsPerUser: "ConnectionRateLimitReached"
        case .channelsPerConnection: "ChannelRateLimitReached"
        case .filtersPerChannel, .patternsPerConnection: "RealtimeDisabledForConfiguration"
        case .messageBytes: "message_size_exceeded"
        case .payloadBytes, .presenceBytes: "payload_size_exceeded"
        case .joinsPerSecond: "ClientJoinRateLimitReached"
        case .presencePerSecond: "ClientPresenceRateLimitReached"
        }
    }

    /// Says what is too much, what is allowed, and what to do.
    func sentence(_ value: Int) -> String {
        switch self {
        case .connections: "Too many connected users: this hub takes \(value) sockets (\(setting)); try again later"
        case .connectionsPerAddress:
            "Too many connected users: one address may have \(value) sockets (\(setting)); close another first"
        case .connectionsPerUser:
            "Too many connected users: one user may have \(value) sockets (\(setting)); close another first"
        case .channelsPerConnection: "Too many channels: one socket may join \(value) (\(setting)); leave one first"
        case .filtersPerChannel:
            "Too many postgres_changes: one join may have \(value) (\(setting)); spread them over several channels"
        case .patternsPerConnection:
            "Too many patterns: the filters of one socket may have \(value) of like, ilike, match and imatch (\(setting)); "
                + "filter in the client, or leave a channel first"
        case .messageBytes: "The message is too large: it may have \(value) bytes (\(setting)); send less"
        case .payloadBytes: "The payload is too large: it may have \(value) bytes (\(setting)); send less"
        case .presenceBytes:
            "The presence payload is too large: it may have \(value) bytes (\(setting)); send less"
        case .joinsPerSecond:
            "Too many joins per second: one socket may make \(value) (\(setting)); join again later"
        case .presencePerSecond:
            "Too many presence messages per second: one socket may send \(value) (\(setting)); send again later"
        }
    }

    var nextAction: Refusal.NextAction {
        switch self {
        case .connections, .connectionsPerAddress, .connectionsPerUser, .joinsPerSecond, .presencePerSecond: .retry
        case .channelsPerConnection, .filtersPerChannel, .patternsPerConnection, .messageBytes, .payloadBytes,
            .presenceBytes:
            .giveUp
        }
    }
}
