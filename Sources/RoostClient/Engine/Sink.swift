/// Where what arrives goes: the buffer of one sequence.
enum Sink: Sendable {
    case changes(Mailbox<ChangeSignal>)
    case broadcasts(String, Mailbox<IncomingBroadcast>)
    case presence(Mailbox<[String: [PresenceMember]]>)
    case typing(Mailbox<TypingSet>)
    case occupancy(Mailbox<Occupancy>)
    case events(Mailbox<ChannelEvent>)
    case messages(Mailbox<ServerMessage>)

    func finish(_ error: RoostError?) {
        switch self {
        case .changes(let mailbox): mailbox.finish(error)
        case .broadcasts(_, let mailbox): mailbox.finish(error)
        // These say how it ended, or have nothing to say of it.
        case .presence(let mailbox): mailbox.finish()
        case .typing(let mailbox): mailbox.finish()
        case .occupancy(let mailbox): mailbox.finish()
        case .events(let mailbox): mailbox.finish()
        case .messages(let mailbox): mailbox.finish()
        }
    }
}
