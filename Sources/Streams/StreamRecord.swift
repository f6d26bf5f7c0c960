/// What happened to a stream: all that it is follows from its records, in order. They are what is written down.
package enum StreamRecord: Sendable, Equatable {
    /// The first, and there is no other.
    ///
    /// - Parameter at: milliseconds since 1970.
    case created(StreamID, StreamName, StreamConfiguration, at: Int64)
    /// Directly behind the first, of a stream whose file was written anew: what came before is not kept any more.
    case continued(StreamCheckpoint)
    /// Bytes as readers see them, an end, or both at once.
    case appended([UInt8], StreamEnding?, producer: ProducerStamp?, sequence: String?)
    /// A producer held a connection for the first time: from here on its silence says something, also after a restart.
    case held
    /// An end waits for its row to be committed: one that comes with an append, a cancel, or that of a producer that is gone. One of the
    /// next two follows.
    case closing([UInt8], StreamEnding, producer: ProducerStamp?, sequence: String?)
    /// Row and close are committed: what was closing is appended.
    case closed(row: [UInt8]?)
    /// They are not, and what was closing never was.
    case reopened
    /// An end that no producer made. Producers of this moment are of the past: each has to begin a new epoch.
    case ended(StreamEnding)
}
