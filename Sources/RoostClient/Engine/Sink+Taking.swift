extension Sink {
    /// What goes to all sequences of a kind.
    func take(_ action: ChannelAction) {
        switch (action, self) {
        case (.expired(let reason), .changes(let mailbox)): mailbox.put(.expired(reason: reason))
        case (.failChanges(let error), .changes(let mailbox)): mailbox.finish(error)
        case (.broadcast(let broadcast), .broadcasts(let event, let mailbox)) where broadcast.event == event:
            mailbox.put(broadcast)
        case (.occupancy(let occupancy), .occupancy(let mailbox)): mailbox.put(occupancy)
        case (.tell(let event), .events(let mailbox)): mailbox.put(event)
        case (.message(let message), .messages(let mailbox)): mailbox.put(message)
        default: break
        }
    }
}
