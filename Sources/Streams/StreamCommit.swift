/// An end that is to be committed with a row of the application's (`streams.on_close`).
package struct StreamCommit: Sendable {
    /// Names the attempt for good, also for the hub's next process.
    package let key: StreamCommitKey
    package let name: StreamName
    /// All that the stream has, what came with its end included: text, an array of JSON, or bytes.
    package let content: [UInt8]
    package let isBinary: Bool
    package let status: StreamEnding.Reason
    /// Milliseconds since 1970.
    package let startedAt: Int64
    package let endedAt: Int64
    package let bearer: StreamBearer
    /// Whose statement writes the row.
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

/// One attempt to close one stream; never used twice.
package struct StreamCommitKey: Sendable, Hashable {
    package let id: StreamID
    package let attempt: Int

    package init(id: StreamID, attempt: Int) {
        self.id = id
        self.attempt = attempt
    }
}

package enum StreamCommitOutcome: Sendable, Equatable {
    /// Row and close are there: the row as JSON text, nil where the statement returned none.
    case committed(row: [UInt8]?)
    /// Neither is there, and neither comes any more. Postgres' sentence.
    case refused(String)
    /// It cannot be known now; to be asked again by `settle`.
    case unknown
}

/// Commits rows together with closes. From any thread; must not wait. Answers come once, from another thread.
package protocol StreamCommitter: Sendable {
    func commit(_ commit: StreamCommit, answer: @escaping @Sendable (StreamCommitOutcome) -> Void)

    /// What became of an attempt that was left behind. One that is not committed by now never is: that is decided by asking.
    func settle(_ key: StreamCommitKey, answer: @escaping @Sendable (StreamCommitOutcome) -> Void)

    /// The outcome is written where the stream is: nobody asks any more.
    func forget(_ key: StreamCommitKey)
}
