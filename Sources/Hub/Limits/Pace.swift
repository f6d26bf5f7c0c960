/// A rate at which a socket is read. Nobody is refused for it: what comes faster waits in the sender's kernel.
package enum Pace: String, Sendable, CaseIterable {
    case messagesPerSecond = "messages_per_second"
    case bytesPerSecond = "bytes_per_second"
}
