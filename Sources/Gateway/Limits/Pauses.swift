import Hub

/// Sockets that sent faster than they may and are not read for a moment.
struct Pauses {
    private var until: [Slot: (wsi: OpaquePointer, time: Int64)] = [:]

    /// Milliseconds between looks at who may be read again, and the shortest pause: shorter ones would cost a loop more
    /// than they spare it.
    static let grain: Int64 = 20

    var isEmpty: Bool { until.isEmpty }

    mutating func begin(_ slot: Slot, _ wsi: OpaquePointer, until time: Int64) {
        until[slot] = (wsi, time)
    }

    mutating func forget(_ slot: Slot) {
        if !until.isEmpty { until[slot] = nil }
    }

    /// Those whose time has come; they are not paused any more.
    mutating func takeDue(at now: Int64) -> [OpaquePointer] {
        let due = until.filter { $0.value.time <= now }
        for slot in due.keys { until[slot] = nil }
        return due.values.map(\.wsi)
    }
}
