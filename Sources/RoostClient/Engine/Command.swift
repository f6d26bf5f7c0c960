/// What the app's calls tell the engine. They go through one queue, so that they are in order, those that cannot wait
/// (making a sequence, dropping it) as well as those that can.
enum Command: Sendable {
    case connect
    case networkIsBack
    case appState(AppState)
    case tick

    case watchState(SubscriptionID, Mailbox<ConnectionState>)
    case watchSocket(SubscriptionID, Mailbox<SocketEvent>)
    case unwatch(SubscriptionID)

    case open(ChannelID, topic: String, ChannelConfiguration, ChannelFlag)
    case attach(ChannelID, SubscriptionID, Sink, ChangeBinding?)
    case detach(ChannelID, SubscriptionID)
    /// Nobody holds the channel or one of its sequences any more.
    case release(ChannelID)
    case untrack(ChannelID)
    case typing(ChannelID, Bool, [UInt8])

    case call(ChannelID, CallID, Call, Answer)
    case cancel(ChannelID, CallID)

    /// A call whose caller waits.
    enum Call: Sendable {
        case subscribe
        case leave
        case send(ClientMessage.Body)
        case track([UInt8])
    }

    typealias Answer = CheckedContinuation<RoostError?, Never>
}
