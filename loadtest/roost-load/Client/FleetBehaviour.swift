/// What the sockets of a fleet do, and what is done with their messages.
protocol FleetBehaviour: AnyObject {
    func opening(of slot: Int) throws -> Opening

    /// - Parameters:
    ///   - frame: the payload of a text or binary frame, of a socket that is joining or has joined.
    ///   - now: when the bytes were taken from the socket, by `Clock`.
    /// - Returns: whether it was a message of this run; others are looked at for errors.
    func received(_ frame: UnsafeRawBufferPointer, on slot: Int, at now: UInt64, _ fleet: Fleet<Self>) throws -> Bool

    func joined(_ slot: Int, at now: UInt64, _ fleet: Fleet<Self>) throws

    /// The connection is no more.
    func ended(_ slot: Int, at now: UInt64, _ fleet: Fleet<Self>) throws

    /// The sockets that were ready have been served.
    func turnEnded()
}
