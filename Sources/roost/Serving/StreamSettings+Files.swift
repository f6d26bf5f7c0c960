import DurableStreams
import Forwarding
import Gateway
import Logging
import Settings
import StreamFiles
import Streams
import Webhooks
import Wire

extension StreamSettings {
    /// Nil if the hub serves no streams.
    ///
    /// - Parameter shared: the place of the streams that several hubs share; nil for a single hub.
    func fileServiceSetup(
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
    /// - Throws: `RunFailure` if a route is invalid.
    func checkRoutes() throws {
        for text in routes where StreamRoute(text) == nil {
            throw RunFailure(
                "streams.routes has `\(text)`, which is not a route; write it like /reply=reply/{conversation}, or "
                    + "with ;event=type, ;turns or ;forward=URL behind it.", .configuration)
        }
    }

    /// The service that passes requests on to the application's backend; nil if no route does.
    ///
    /// - Throws: `RunFailure` with the remedy.
    func forwardService(_ streams: FileStreamService?, _ logger: Logger) throws -> ForwardService? {
        guard let streams, routes.contains(where: { StreamRoute($0)?.backend != nil }) else { return nil }
        guard let forwardSecret, let key = WebhookSecret(forwardSecret) else {
            throw RunFailure(
                "streams.routes has a route with ;forward and streams.forward_secret (ROOST_STREAMS_FORWARD_SECRET) is not set, "
                    + "or is no key: a backend could not tell who calls it. Set it to whsec_ and the output of "
                    + "`openssl rand -base64 32`.", .configuration)
        }
        do {
            _ = try JSON(parsing: Array(forwardError.utf8))
        } catch {
            throw RunFailure(
                "streams.forward_error is not valid JSON; write it like {\"type\":\"error\",\"error\":\"$reason\"}.",
                .configuration)
        }
        return ForwardService(
            ForwardService.Setup(secret: key, errorEvent: forwardError, patience: .seconds(forwardTimeout)), streams,
            logger: logger)
    }
}

extension StreamFolder.Failure: Failure {
    var sentence: String { description + "." }
    var status: ExitStatus { .configuration }
}

/// Receives changes of streams: the loops, and the service that passes requests on.
struct StreamSinks: StreamSink {
    let gateway: Gateway
    let forwarder: ForwardService?

    func streamChanged(_ stream: StreamBuffer, for loop: Int) {
        if loop == ForwardService.watcher {
            forwarder?.streamChanged(stream)
        } else {
            gateway.streamChanged(stream, for: loop)
        }
    }
}
