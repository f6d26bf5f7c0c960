/// The settings of `streams`.
package struct StreamSettings: Sendable {
    /// Nil: no streams are served.
    package var directory: String?
    /// `none`, `close` or `always`.
    package let sync: String
    /// A statement, or a list of entries as JSON; nil: streams are not written to a table.
    package var onClose: String?
    /// In seconds.
    package let closeWithin: Int
    package let routes: [String]
    package let forwardSecret: String?
    /// Seconds.
    package let forwardTimeout: Int
    /// A JSON value.
    package let forwardError: String
    /// A list of entries as JSON.
    package let bounds: String?
    package let bytes: Int
    package let binaryBytes: Int
    package let totalBytes: Int
    package let count: Int
    package let bytesPerUser: Int
    package let countPerUser: Int
    /// These four in seconds.
    package let keepAfterEnd: Int
    package let stalledAfter: Int
    package let abortedAfter: Int
    /// Zero: never.
    package let abandonedAfter: Int

    init(_ values: EffectiveValues) {
        directory = values.text(.streamsDirectory)
        sync = values.requiredText(.streamsSync)
        onClose = values.text(.streamsOnClose)
        closeWithin = values.integer(.streamsCloseWithin)
        routes = values.words(.streamsRoutes)
        forwardSecret = values.text(.streamsForwardSecret)
        forwardTimeout = values.integer(.streamsForwardTimeout)
        forwardError = values.requiredText(.streamsForwardError)
        bounds = values.text(.streamsBounds)
        bytes = values.integer(.streamBytes)
        binaryBytes = values.integer(.streamBinaryBytes)
        totalBytes = values.integer(.streamTotalBytes)
        count = values.integer(.streamCount)
        bytesPerUser = values.integer(.streamBytesPerUser)
        countPerUser = values.integer(.streamCountPerUser)
        keepAfterEnd = values.integer(.streamKeepAfterEnd)
        stalledAfter = values.integer(.streamStalledAfter)
        abortedAfter = values.integer(.streamAbortedAfter)
        abandonedAfter = values.integer(.streamAbandonedAfter)
    }
}
