/// A request of `LogReader`; carried out in order.
package enum LogReaderAction: Equatable, Sendable {
    /// Messages whose turn has come. `PeerTable` is told too, so that the end of their hub is noticed.
    case apply(AppliedMessages)
    /// Read entries of the stream by XRANGE, and pass on the answer.
    case fetch(LogFetch)
    /// Messages that this hub will never have.
    case tellGap(LogGap)
    /// Entries after this place, applied here, are no longer at their places in the log: their order is known only to
    /// hubs that applied them then. Nil: which entries is unknown.
    case forked(after: LogPlace?)
    /// Run the script OPEN again, on a new connection if the last OPEN did not help.
    case reopen
    /// The log is read up to the head that OPEN returned. The `LogWriter` may be told.
    case caughtUp(LogCaughtUp)
    /// A message to this hub is due.
    case deliver(DirectMessage)
    /// A message to this hub arrived too late to be of use, or could not wait: the hub that asked for it asks again.
    case stale(DirectMessage)
    /// Everything that `hub` sent up to `sequence` is applied, and nothing beyond: its digest was this one then.
    case compareDigest(hub: HubIdentity, sequence: UInt64, digest: UInt64)
}

/// Consecutive messages of one batch.
package struct AppliedMessages: Equatable, Sendable {
    package var hub: HubIdentity
    package var isOwn: Bool
    /// The place where their hub first opened the log.
    package var since: LogPlace
    package var place: LogPlace
    /// The position of the first one in its batch: (epoch, offset, index) identifies a message on every hub.
    package var index: Int
    package var sequence: UInt64
    package var messages: ArraySlice<ArraySlice<UInt8>>
}

package struct LogFetch: Equatable, Sendable {
    /// Returned with the answer, so that a late answer is recognized.
    package var id: UInt64
    /// The place after which entries are requested (`LogPlace.rangeStart`).
    package var after: LogPlace
    package var count: Int
}

package struct LogCaughtUp: Equatable, Sendable {
    package var place: LogPlace
    package var tag: UInt64
    /// This hub's newest sequence in this log; nil if unknown, because this is another log than before.
    package var ownSequence: UInt64?
}

package struct LogGap: Equatable, Sendable {
    package enum Reason: Equatable, Sendable {
        /// The publisher gave them up before they reached the log, or they were trimmed before this hub could read them.
        case missing
        /// Entries that this hub had not read were trimmed. Some may come from hubs unknown here.
        case trimmed
        /// The log was lost while this hub was away. It may have contained hubs unknown here.
        case logLost
        /// The publisher ended without saying good-bye. What it had accepted but not written is lost.
        case endedUnsent
        /// The publisher ended, and the end of what it had written may be lost with the log.
        case endedWithTail
    }

    /// Nil: hubs unknown here.
    package var hub: HubIdentity?
    /// The missing sequences. Nil: everything that may have come after `after`.
    package var missing: ClosedRange<UInt64>?
    package var after: UInt64
    package var reason: Reason
}
