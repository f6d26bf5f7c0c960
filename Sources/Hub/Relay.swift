import Wire

/// What one loop's hub tells those of the other loops.
package enum Relay: Sendable {
    case broadcast(ChannelKey, BroadcastMessage)
    case presence(ChannelKey, PresenceDiff)
    case typing(ChannelKey, TypingRelay)
}

extension Hub {
    /// Takes over what another loop's hub did.
    package func apply(_ relay: Relay) {
        switch relay {
        case .broadcast(let key, let message):
            guard let channel = channels[key] else { return }
            context.deliver(message, in: channel, to: channel.members, except: nil)
            passOnNews(in: channel)
        case .presence(let key, let diff):
            let channel = channel(key)
            presence.apply(diff, to: channel, &context)
            discardIfIdle(channel)
        case .typing(let key, let relay):
            let channel = channel(key)
            typing.apply(relay, to: channel, &context)
            discardIfIdle(channel)
        }
    }
}
