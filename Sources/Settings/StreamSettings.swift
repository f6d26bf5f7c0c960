/// What `streams` says. There is none where no folder is set.
package struct StreamSettings: Sendable {
    package let directory: String
    /// `none`, `close` or `always`.
    package let sync: String
    package let bytes: Int
    package let binaryBytes: Int
    package let totalBytes: Int
    package let count: Int
    /// These four in seconds.
    package let keepAfterEnd: Int
    package let stalledAfter: Int
    package let abortedAfter: Int
    /// Zero: never.
    package let abandonedAfter: Int

    init?(_ values: EffectiveValues) {
        guard let directory = values.text(.streamsDirectory) else { return nil }
        self.directory = directory
        sync = values.requiredText(.streamsSync)
        bytes = values.integer(.streamBytes)
        binaryBytes = values.integer(.streamBinaryBytes)
        totalBytes = values.integer(.streamTotalBytes)
        count = values.integer(.streamCount)
        keepAfterEnd = values.integer(.streamKeepAfterEnd)
        stalledAfter = values.integer(.streamStalledAfter)
        abortedAfter = values.integer(.streamAbortedAfter)
        abandonedAfter = values.integer(.streamAbandonedAfter)
    }
}
