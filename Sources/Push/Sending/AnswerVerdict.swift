/// The consequence of an answer, for every kind of service.
enum AnswerVerdict: Equatable {
    case delivered
    /// The token is no longer valid; it is dropped if it was registered before `since`, in milliseconds since 1970. If the service
    /// reports no time (nil), it is dropped unless it was registered again since the notification was addressed.
    case unregistered(since: Int64?)
    /// The token is malformed, or belongs to another app.
    case badToken
    /// This notification must never be sent again.
    case refused
    /// The service accepts no notification of this size.
    case tooLarge
    /// The credential is too old: the notification is sent again with a newer one.
    case staleCredential
    /// Nothing sent with this key will be accepted until the operator acts.
    case badKey
    /// The key is valid only for the other environment.
    case keyOfOtherEnvironment
    /// The connection is the wrong one for this key, or was silent for too long: the notification is sent again on another.
    case otherConnection
    /// This device gets too many notifications: the lane waits.
    case laterForThisLane
    /// The credential changes too often: it is kept, and everything waits.
    case laterWithThisCredential
    /// The service cannot accept anything for the time being, if several answers in a row say so.
    case laterForAll
}
