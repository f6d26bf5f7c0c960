import DurableStreams
import Logging
import Settings
import StreamFiles
import Streams

extension StreamSettings {
    /// Nil where there are to be no streams.
    ///
    /// - Parameter shared: where several hubs have them together; nil for a hub alone.
    func setup(
        _ committer: any StreamCommitter, _ shared: SharedStreams?, _ logger: Logger
    ) throws -> FileStreamService.Setup? {
        guard let directory else { return nil }
        var setup = FileStreamService.Setup(directory: directory, logger: logger)
        setup.committer = committer
        setup.shared = shared
        setup.closeRules = try closeRules()
        setup.sync = FileStreamService.Sync(rawValue: sync) ?? .none
        setup.limits.closedWithin = Int64(closeWithin) * 1000
        setup.limits.bounds = try boundRules()
        if shared != nil, setup.limits.bounds.contains(where: { $0.bound.keepsNewest }) {
            throw RunFailure(
                "streams.bounds has keep: newest, which streams of several hubs cannot (cluster.url): a hub that comes later "
                    + "reads them from their start; leave it out.", .configuration)
        }
        setup.limits.bytes = bytes
        setup.limits.binaryBytes = binaryBytes
        setup.limits.totalBytes = totalBytes
        setup.limits.count = count
        setup.limits.bytesPerUser = bytesPerUser
        setup.limits.countPerUser = countPerUser
        setup.limits.keptAfterEnd = Int64(keepAfterEnd) * 1000
        setup.lease.stalledAfter = Int64(stalledAfter) * 1000
        setup.lease.abortedAfter = Int64(abortedAfter) * 1000
        setup.lease.abandonedAfter = Int64(abandonedAfter) * 1000
        return setup
    }
}

extension StreamSettings {
    /// - Throws: `RunFailure` where one of them is none.
    func checkRoutes() throws {
        for text in routes where StreamRoute(text) == nil {
            throw RunFailure(
                "streams.routes has `\(text)`, which is not a route; write it like /reply=reply/{conversation}, or "
                    + "with ;event=type behind it.", .configuration)
        }
    }
}

extension StreamFolder.Failure: Failure {
    var sentence: String { description + "." }
    var status: ExitStatus { .configuration }
}
