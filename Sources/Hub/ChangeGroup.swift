/// The subscribers of one channel who asked for the same row changes with the same role: one entry in the feed, one frame
/// per change for all of them.
final class ChangeGroup {
    let id: ChangeGroupID
    /// The channel owns its groups, and goes last.
    unowned let channel: Channel
    let subscription: ChangeSubscription
    var audience = Audience()
    var state = State.registering
    /// Who waits for the feed's answer before their join is answered.
    var waiting: [Slot] = []

    enum State: Equatable {
        case registering
        case live
        /// The feed cannot serve it for now; the sentence was sent to the subscribers.
        case failed(String)
    }

    init(id: ChangeGroupID, channel: Channel, subscription: ChangeSubscription) {
        self.id = id
        self.channel = channel
        self.subscription = subscription
    }
}
