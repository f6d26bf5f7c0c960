"""What a request is answered with if it is not 200."""

#: What Apple's documentation, "Handling notification responses from APNs", has beside each reason.
STATUS = {
    **dict.fromkeys((
        "BadChannelId", "BadCollapseId", "BadDeviceToken", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic",
        "ChannelNotRegistered", "DeviceTokenNotForTopic", "DuplicateHeaders", "IdleTimeout", "InvalidPushType",
        "MissingChannelId", "MissingDeviceToken", "MissingTopic", "PayloadEmpty", "TopicDisallowed"), 400),
    **dict.fromkeys((
        "BadCertificate", "BadCertificateEnvironment", "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken",
        "ExpiredProviderToken", "Forbidden", "InvalidProviderToken", "MissingProviderToken", "UnrelatedKeyIdInToken"), 403),
    "BadPath": 404, "MethodNotAllowed": 405, "ExpiredToken": 410, "Unregistered": 410, "PayloadTooLarge": 413,
    "TooManyProviderTokenUpdates": 429, "TooManyRequests": 429, "InternalServerError": 500, "ServiceUnavailable": 503,
    "Shutdown": 503,
}


class Refusal(Exception):
    """`violation` says what the client did wrong; None where it could not know better."""

    def __init__(self, reason, violation=None, timestamp=None, status=None):
        super().__init__(reason)
        self.reason, self.violation, self.timestamp = reason, violation, timestamp
        self.status = status or STATUS[reason]
