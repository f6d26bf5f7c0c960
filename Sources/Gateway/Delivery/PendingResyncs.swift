package import Hub

/// Who was spared steps of presence or typing, of which channels: each is to be sent the state that they led to.
///
/// From the first frame that was left out until the state is sent, every step of that state is left out: a difference
/// to something that the client has not seen would mislead it.
package struct PendingResyncs {
    private var states: [Slot: [ChannelState]] = [:]
    /// Sockets that are to be sent a state and have nothing pending.
    package var ready: [Slot] = []

    package init() {}

    /// True if a frame of this kind and channel is to be left out, which is remembered.
    package mutating func spare(_ slot: Slot, _ state: ChannelState, isBehind: Bool) -> Bool {
        if states[slot]?.contains(state) == true { return true }
        guard isBehind else { return false }
        states[slot, default: []].append(state)
        return true
    }

    package func has(_ slot: Slot) -> Bool { states[slot] != nil }

    /// One of the states, which is pending no longer.
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
