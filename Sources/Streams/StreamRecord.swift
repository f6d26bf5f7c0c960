/// An event of a stream: its whole state follows from its records, in order. Records are what is stored.
package enum StreamRecord: Sendable, Equatable {
    /// The first record, and the only one of its kind.
    ///
    /// - Parameter at: milliseconds since 1970.
    case created(StreamID, StreamName, StreamConfiguration, at: Int64)
    /// Directly after the first, in a file that was rewritten: earlier content is no longer kept.
    case continued(StreamCheckpoint)
    /// Bytes as readers see them, an end, or both at once.
    case appended([UInt8], StreamEnding?, producer: ProducerStamp?, sequence: String?)
    /// A producer held a connection for the first time: from now on its silence is meaningful, even after a restart.
    case held
    /// An end waits for its row to be committed: it came with an append, a cancel, or the loss of the producer. One of
    /// the next two records follows.
    case closing([UInt8], StreamEnding, producer: ProducerStamp?, sequence: String?)
    /// The row and the close are committed: the pending content is appended.
    case closed(row: [UInt8]?)
    /// They are not committed, and the pending content never existed.
    case reopened
    /// An end that no producer made. Producers up to now are fenced: each must begin a new epoch.
    case ended(StreamEnding)
}
