/// A notification that has no outcome yet.
struct QueuedPush {
    let push: Push
    let server: ServerName
    /// How often APNs put it off.
    var postponed = 0
    /// How often it came back without having been looked at.
    var unseen = 0
    /// How often it left and was not answered.
    var lost = 0
    /// How often its provider token was found too old, or its connection wrong.
    var rejected = 0

    init(_ push: Push) {
        self.push = push
        server = ServerName(push.target)
    }
}
