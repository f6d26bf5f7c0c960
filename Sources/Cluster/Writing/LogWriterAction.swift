/// What a `LogWriter` wants done, in this order.
package enum LogWriterAction: Equatable, Sendable {
    /// Run the script PUB, and hand its answer to `acknowledged` or `failed`.
    case publish(LogPublish)
    /// Run the script OPEN: the epoch that was opened is over. The reader is told its answer first.
    case reopen
    /// Messages that were accepted, and that the log will never have. Others are told by the hole in the sequence.
    case dropped(ClosedRange<UInt64>)
}

/// One call of the script PUB.
package struct LogPublish: Equatable, Sendable {
    /// The call is refused where the log has another one.
    package var epoch: UInt64
    /// The entry's tag: never 0, and of this call alone.
    package var tag: UInt64
    /// A `LogBatch`, encoded.
    package var batch: [UInt8]
    package var sequences: ClosedRange<UInt64>
}

/// Why a call of PUB did not write, or may not have.
package enum LogPublishFailure: Sendable {
    /// The log has another epoch. Nothing was written.
    case epoch
    /// No answer came, or one that says nothing: the entry may be in the log.
    case unknown
}
