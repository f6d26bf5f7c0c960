import Documents

/// The meaning of APNs' answers (Apple, "Handling notification responses from APNs").
enum APNsAnswer {
    /// The limits of a body; those of APNs have some 60 bytes.
    private static let limits = JSONDocument.Limits(bytes: 65_536, depth: 8)

    /// Returns the answer with its reason and, for status 410, the moment since which the token is invalid.
    static func read(_ answer: Answer) -> Answer {
        let document: JSONDocument?
        // A body that is not JSON comes from something between us and APNs: its status has to do.
        do { document = try JSONDocument(parsing: answer.body, limits: limits) } catch { document = nil }
        var read = answer
        read.reason = document?["reason"]?.string.map { Answer.printable($0) } ?? ""
        read.timestamp = document?["timestamp"]?.int.map(Int64.init)
        return read
    }

    static func verdict(on answer: Answer) -> AnswerVerdict {
        switch (answer.status, answer.reason) {
        case (200..<300, _): .delivered
        case (410, _): .unregistered(since: answer.timestamp)
        case (400, AnswerReason.badToken), (400, "DeviceTokenNotForTopic"): .badToken
        case (400, "IdleTimeout"): .otherConnection
        case (403, "ExpiredProviderToken"): .staleCredential
        case (403, "UnrelatedKeyIdInToken"): .otherConnection
        case (403, "BadEnvironmentKeyIdInToken"), (403, AnswerReason.badEnvironmentKey): .keyOfOtherEnvironment
        case (403, _): .badKey
        case (429, "TooManyProviderTokenUpdates"): .laterWithThisCredential
        case (429, _): .laterForThisLane
        case (500..., _): .laterForAll
        default: .refused
        }
    }

    /// Clocks may differ by this much before the advice mentions them, in milliseconds; a provider token is good for an hour.
    private static let tolerance: Int64 = 60_000

    /// Advises the operator when APNs accepts nothing that is sent with a key.
    static func advice(on answer: Answer, at unix: Int64) -> String {
        switch answer.reason {
        case "ExpiredProviderToken", "InvalidProviderToken":
            if let skew = skew(answer, at: unix) { return skew }
            return answer.reason == "ExpiredProviderToken"
                ? "the provider token was just made, so check that this machine's clock is right."
                : "check that the team id, the key id and the private key belong together, and that the key is not "
                    + "revoked."
        case "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken":
            return "the key is for the other environment; make one for this, or set apns.environment."
        case "UnrelatedKeyIdInToken":
            return "the key does not belong to the app's team; set apns.key_id and apns.team_id."
        case "MissingProviderToken":
            return "the authorization did not arrive; check whether a proxy removes it."
        case "BadCertificate", "BadCertificateEnvironment":
            return "it wants a certificate; check that apns.url leads to APNs."
        default:
            return "check in developer.apple.com that the key is enabled for APNs and for the app."
        }
    }

    private static func skew(_ answer: Answer, at unix: Int64) -> String? {
        guard let date = answer.date, abs(unix - date) > tolerance else { return nil }
        let seconds = abs(unix - date) / 1000
        return "this machine's clock is \(seconds) s \(unix > date ? "ahead of" : "behind") APNs'; set it right."
    }
}

/// The reasons that decide where a notification is sent next.
package enum AnswerReason {
    /// The token is malformed, or belongs to the other environment.
    package static let badToken = "BadDeviceToken"
    /// The key is scoped to the other environment. Apple's page spells it with `KeyId`.
    package static let badEnvironmentKey = "BadEnvironmentKeyInToken"
}

extension KnownReasons {
    static let apns = KnownReasons(
        all: [
            "BadCollapseId", "BadDeviceToken", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic",
            "DeviceTokenNotForTopic", "DuplicateHeaders", "IdleTimeout", "InvalidPushType", "MissingDeviceToken",
            "MissingTopic", "PayloadEmpty", "TopicDisallowed", "BadCertificate", "BadCertificateEnvironment",
            "ExpiredProviderToken", "Forbidden", "InvalidProviderToken", "MissingProviderToken",
            "UnrelatedKeyIdInToken",
            "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken", "BadPath", "MethodNotAllowed", "ExpiredToken",
            "Unregistered", "PayloadTooLarge", "TooManyProviderTokenUpdates", "TooManyRequests", "InternalServerError",
            "ServiceUnavailable", "Shutdown", "BadChannelId", "ChannelNotRegistered", "MissingChannelId",
            "FeatureNotEnabled",
            "TopicMismatch",
        ])
}
