/// What is done with the messages of sockets that have joined.
protocol FleetBehaviour {
    /// - Parameter now: when the bytes were taken from the socket, by `Clock`.
    mutating func received(_ frame: UnsafeRawBufferPointer, on slot: Int, at now: UInt64)

    /// The sockets that were ready have been served.
    mutating func turnEnded()
}

/// Takes no notice.
struct NoBehaviour: FleetBehaviour {
    mutating func received(_ frame: UnsafeRawBufferPointer, on slot: Int, at now: UInt64) {}
    mutating func turnEnded() {}
}
