import Hub

/// What a push is about, for when its outcome comes.
enum Errand {
    case alert(message: String, user: String)
    case activity(id: String, timestamp: Int64)
    /// A start or a broadcast: nobody waits for it.
    case once
}
