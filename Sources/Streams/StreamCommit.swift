/// An end to be committed with a row of the application (`streams.on_close`).
package struct StreamCommit: Sendable {
    /// Identifies the attempt permanently, also for the hub's next process.
    package let key: StreamCommitKey
    package let name: StreamName
    /// The whole content, including bytes that came with the end: text, a JSON array, or bytes.
    package let content: [UInt8]
    package let isBinary: Bool
    package let status: StreamEnding.Reason
    /// Milliseconds since 1970.
    package let startedAt: Int64
    package let endedAt: Int64
    package let bearer: StreamBearer
    /// The rule whose statement writes the row.
    package let rule: CloseRule

    package init(
        key: StreamCommitKey, name: StreamName, content: [UInt8], isBinary: Bool, status: StreamEnding.Reason,
        startedAt: Int64, endedAt: Int64, bearer: StreamBearer, rule: CloseRule
    ) {
        self.key = key
        self.name = name
        self.content = content
        self.isBinary = isBinary
        self.status = status
        self.startedAt = startedAt
        self.endedAt = endedAt
        self.bearer = bearer
        self.rule = rule
    }
}

/// One attempt to close one stream; never reused.
package struct StreamCommitKey: Sendable, Hashable {
    package let id: StreamID
    package let attempt: Int

    package init(id: StreamID, attempt: Int) {
        self.id = id
        self.attempt = attempt
    }
}

package enum StreamCommitOutcome: Sendable, Equatable {
    /// The row and the close are committed: the row as JSON text, nil if the statement returned none.
    case committed(row: [UInt8]?)
    /// Neither is committed, and neither will be. Carries Postgres' sentence.
    case refused(String)
    /// The outcome is unknown for now; it must be asked for again.
    case unknown
}

/// Commits rows together with closes. Thread-safe; must not wait. Answers come once, from another thread.
package protocol StreamCommitter: Sendable {
    func commitEnd(_ commit: StreamCommit, answer: @escaping @Sendable (StreamCommitOutcome) -> Void)

    /// Finds the outcome of an attempt left behind. Asking decides it: an attempt that is not yet committed never will be.
    func settleAttempt(_ key: StreamCommitKey, answer: @escaping @Sendable (StreamCommitOutcome) -> Void)

    /// The outcome is recorded with the stream, and is not asked for again.
    func forgetAttempt(_ key: StreamCommitKey)
}
