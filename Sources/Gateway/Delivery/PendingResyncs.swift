package import Hub

/// The sockets that were spared steps of presence or typing, and the channel states that each must be sent instead.
///
/// From the first frame left out until the state is sent, every step to that state is left out: a difference to a state
/// that the client has not seen would mislead it.
package struct PendingResyncs {
    private var states: [Slot: [ChannelState]] = [:]
    /// Sockets that must be sent a state and have nothing pending.
    package var ready: [Slot] = []

    package init() {}

    /// Returns whether to leave out a step to this state, and remembers it.
    package mutating func spare(_ slot: Slot, _ state: ChannelState, isBehind: Bool) -> Bool {
        if states[slot]?.contains(state) == true { return true }
        guard isBehind else { return false }
        states[slot, default: []].append(state)
        return true
    }

    package func has(_ slot: Slot) -> Bool { states[slot] != nil }

    /// Removes and returns one of the slot's states.
    package mutating func take(_ slot: Slot) -> ChannelState? {
        let state = states[slot]?.popLast()
        if states[slot]?.isEmpty == true { states[slot] = nil }
        return state
    }

    package mutating func forget(_ slot: Slot) {
        states[slot] = nil
        ready.removeAll { $0 == slot }
    }
}
