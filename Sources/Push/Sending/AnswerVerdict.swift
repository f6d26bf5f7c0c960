/// What follows from an answer, whatever the kind of the service.
enum AnswerVerdict: Equatable {
    case delivered
    /// The token is none any more; it is dropped if it was registered before `since`, in milliseconds since 1970. Nil where the service does
    /// not say since when: then if it was not registered again since the notification was addressed.
    case unregistered(since: Int64?)
    /// The token is not one, or another app's.
    case badToken
    /// This notification is never to be sent again.
    case refused
    /// The service takes no notification of this size.
    case tooLarge
    /// The credential is too old: the notification goes again with a newer one.
    case staleCredential
    /// Nothing sent with this key will be taken: the operator has to do something.
    case badKey
    /// The key is for the other environment alone.
    case keyOfOtherEnvironment
    /// The connection is not the right one for this key, or was silent for too long: the notification goes again on
    /// another.
    case otherConnection
    /// This device gets too much: the lane waits.
    case laterForThisLane
    /// The credential changes too often: it is kept, and everything waits.
    case laterWithThisCredential
    /// The service cannot take anything for the time being, if several in a row say so.
    case laterForAll
}
