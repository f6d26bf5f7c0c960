/// What a loop has sent, and what it did about slow readers.
struct DeliveryCounters {
    var frames = 0
    var bytes = 0
    var writes = 0
    /// Presence frames that were not queued.
    var coalesced = 0
    /// Sockets that the feed stopped waiting for.
    var writtenOff = 0
    /// Sockets closed at their cap.
    var closed = 0
    /// Sockets that did not take a close frame in time.
    var cut = 0
}
