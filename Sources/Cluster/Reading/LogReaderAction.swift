/// What a `LogReader` wants done, in this order.
package enum LogReaderAction: Equatable, Sendable {
    /// Messages whose turn has come. `PeerTable.wrote` is told too, so that the end of their hub is noticed.
    case apply(AppliedMessages)
    /// Read entries of the stream by XRANGE, and hand the answer to `fetched`.
    case fetch(LogFetch)
    /// Messages that this hub will never have.
    case tellGap(LogGap)
    /// Entries behind this place, which this hub applied, are no longer in the log under their places: their order holds
    /// for those alone who applied them then. Nil: which of them is not known.
    case forked(after: LogPlace?)
    /// Run the script OPEN once more, on a new connection where the last OPEN did not help.
    case reopen
    /// The log is read up to the head that OPEN named. `LogWriter.reopened` may be told.
    case caughtUp(LogCaughtUp)
    /// The turn of a message to this hub has come.
    case deliver(DirectMessage)
    /// A message to this hub came too late to be of use, or could not wait: who asked for it asks again.
    case stale(DirectMessage)
    /// All that `hub` had sent up to `sequence` is applied, and nothing beyond: its digest was this one then.
    case compareDigest(hub: HubIdentity, sequence: UInt64, digest: UInt64)
}

/// Consecutive messages of one batch.
package struct AppliedMessages: Equatable, Sendable {
    package var hub: HubIdentity
    package var isOwn: Bool
    /// Where their hub first opened the log.
    package var since: LogPlace
    package var place: LogPlace
    /// Where the first of them stands in its batch: (epoch, offset, index) names a message on every hub.
    package var index: Int
    package var sequence: UInt64
    package var messages: ArraySlice<ArraySlice<UInt8>>
}

package struct LogFetch: Equatable, Sendable {
    /// Comes back with the answer, so that a late one is known as such.
    package var id: UInt64
    /// What follows this place is asked for (`LogPlace.rangeStart`).
    package var after: LogPlace
    package var count: Int
}

package struct LogCaughtUp: Equatable, Sendable {
    package var place: LogPlace
    package var tag: UInt64
    /// This hub's newest sequence that this log has. Nil where that is not known, as this is another log than before.
    package var ownSequence: UInt64?
}

package struct LogGap: Equatable, Sendable {
    package enum Reason: Equatable, Sendable {
        /// The publisher gave them up before they were in the log, or they were trimmed before this hub could read them.
        case missing
        /// Entries that this hub had not read were trimmed. Hubs that it never heard of may have sent some of them.
        case trimmed
        /// The log was lost while this hub was away. Hubs that it never heard of may have been in it.
        case logLost
        /// The publisher ended without a word. What it had accepted and not written yet is gone with it.
        case endedUnsent
        /// The publisher ended, and the end of what it had written may be lost with the log.
        case endedWithTail
    }

    /// Nil: hubs that this one never heard of.
    package var hub: HubIdentity?
    /// The sequences that are missing. Nil: all that may have come behind `after`.
    package var missing: ClosedRange<UInt64>?
    package var after: UInt64
    package var reason: Reason
}
