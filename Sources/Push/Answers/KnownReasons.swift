/// The reasons that Apple documents ("Handling notification responses from APNs"). Others are passed on as they come, but
/// are counted together: a metric must not have as many names as a server cares to make up.
enum KnownReasons {
    private static let all: Set<String> = [
        "BadCollapseId", "BadDeviceToken", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic",
        "DeviceTokenNotForTopic", "DuplicateHeaders", "IdleTimeout", "InvalidPushType", "MissingDeviceToken",
        "MissingTopic", "PayloadEmpty", "TopicDisallowed", "BadCertificate", "BadCertificateEnvironment",
        "ExpiredProviderToken", "Forbidden", "InvalidProviderToken", "MissingProviderToken", "UnrelatedKeyIdInToken",
        "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken", "BadPath", "MethodNotAllowed", "ExpiredToken",
        "Unregistered", "PayloadTooLarge", "TooManyProviderTokenUpdates", "TooManyRequests", "InternalServerError",
        "ServiceUnavailable", "Shutdown", "BadChannelId", "ChannelNotRegistered", "MissingChannelId",
        "FeatureNotEnabled",
        "TopicMismatch",
    ]

    static func name(of answer: Answer) -> String {
        if all.contains(answer.reason) { return answer.reason }
        return answer.reason.isEmpty ? "status \(answer.status)" : "other"
    }
}
