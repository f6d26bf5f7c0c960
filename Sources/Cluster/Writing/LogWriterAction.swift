/// A request of `LogWriter`; carried out in order.
package enum LogWriterAction: Equatable, Sendable {
    /// Run the script PUB, and report its outcome.
    case publish(LogPublish)
    /// Run the script OPEN: the opened epoch is over. Its answer goes to the `LogReader` first.
    case reopen
    /// Accepted messages that the log will never have. The hole in the sequence tells others.
    case dropped(ClosedRange<UInt64>)
}

/// One call of the script PUB.
package struct LogPublish: Equatable, Sendable {
    /// The expected epoch; the call is refused if the log has another one.
    package var epoch: UInt64
    /// The entry's tag: never 0, and unique to this call.
    package var tag: UInt64
    /// A `LogBatch`, encoded.
    package var batch: [UInt8]
    package var sequences: ClosedRange<UInt64>
}

/// Why a call of PUB did not write, or may not have written.
package enum LogPublishFailure: Sendable {
    /// The log has another epoch. Nothing was written.
    case epoch
    /// No answer came, or a meaningless one: the entry may be in the log.
    case unknown
}
