public import Foundation

/// Where a change comes from.
public struct ChangeInfo: Sendable, Equatable {
    public let schema: String
    public let table: String
    /// When it was committed, to the millisecond.
    public let commitTime: Date?
    /// Behind this change one can resume: `ChannelConfiguration.resumeFrom`. Text without a meaning.
    public let cursor: String?

    init(_ change: RowChange) {
        schema = change.schema
        table = change.table
        commitTime = change.commitTime.flatMap(PostgresTime.date)
        cursor = change.cursor
    }
}
