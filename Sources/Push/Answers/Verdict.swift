/// What follows from an answer (Apple, "Handling notification responses from APNs").
enum Verdict: Equatable {
    case delivered
    case unregistered(since: Int64?)
    case badToken
    /// This notification is never to be sent again.
    case refused
    /// The provider token is too old: a newer one, and once more.
    case staleProviderToken
    /// Nothing sent with this key will be taken: the operator has to do something.
    case badKey
    /// The connection is not the right one for this key, or was silent for too long: once more on another.
    case otherConnection
    /// This device gets too much: later.
    case laterForThisLane
    /// The provider token changes too often: keep it, everything later.
    case laterWithThisToken
    /// APNs cannot, for the time being.
    case laterForAll

    init(_ answer: Answer) {
        self =
            switch (answer.status, answer.reason) {
            case (200..<300, _): .delivered
            case (410, _): .unregistered(since: answer.timestamp)
            case (400, "BadDeviceToken"), (400, "DeviceTokenNotForTopic"): .badToken
            case (400, "IdleTimeout"): .otherConnection
            case (403, "ExpiredProviderToken"): .staleProviderToken
            case (403, "UnrelatedKeyIdInToken"): .otherConnection
            case (403, _): .badKey
            case (429, "TooManyProviderTokenUpdates"): .laterWithThisToken
            case (429, _): .laterForThisLane
            case (500..., _): .laterForAll
            default: .refused
            }
    }
}
