/// What to do about a refusal of the hub, by its `reason` (`docs/errors.md`; a test holds this against `Wire.Refusal`).
package enum NextAction: Equatable {
    case retry, refreshToken, giveUp

    /// Reasons are `Code: sentence` or a sentence. What is not known is tried again: a hub that is newer than this
    /// client may have new reasons, and to give up would be final.
    package init(reason: String) {
        let code = reason.prefix { $0 != ":" }
        switch code {
        case "InvalidJWTToken":
            self = reason.hasSuffix("Token is not valid yet") ? .retry : .refreshToken
        case "MalformedJWT", "JwtSignatureError", "API key is missing": self = .refreshToken
        case "JwtSignerError":
            self = reason.contains("check your JWT secret or JWKS configuration") ? .retry : .giveUp
        case "Unauthorized", "TopicNameRequired", "unmatched topic", "PrivateOnly", "ChannelRateLimitReached",
            "InvalidPostgresChanges", "message_size_exceeded", "payload_size_exceeded",
            "Broadcast payload must be a JSON object", "Presence track payload must be a map",
            "Presence event must be track or untrack":
            self = .giveUp
        case "UnableToReplayMessages":
            self = reason.hasSuffix("Realtime was unable to replay messages") ? .retry : .giveUp
        default: self = .retry
        }
    }

    /// A `system` message carries the sentence without its code.
    package static func isAboutToken(_ message: String) -> Bool {
        message.hasPrefix("Token has expired") || message.hasPrefix("Fields `role` and `exp`")
            || message.hasPrefix("The token provided is not a valid JWT")
            || message.hasPrefix("Failed to validate JWT signature")
    }
}
