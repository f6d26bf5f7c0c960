import ChangeFeed
import Gateway
import Hub
import Logging
import Settings

/// The configuration in the words of each room.
extension RoostConfiguration {
    var gateway: GatewayConfiguration {
        var gateway = GatewayConfiguration()
        gateway.host = httpHost
        gateway.port = httpPort
        gateway.opsHost = opsHost
        gateway.opsPort = opsPort
        gateway.loops = loops
        gateway.maximumMessageBytes = messageBytes
        gateway.pendingBytesPerSocket = pendingBytesPerSocket
        gateway.failuresPerMinute = failuresPerMinute
        gateway.pingAfter = Int32(pingAfter)
        gateway.idleTimeout = Int32(idleTimeout)
        gateway.limits.channelsPerConnection = channelsPerConnection
        gateway.limits.payloadBytes = payloadBytes
        gateway.limits.privateOnly = privateOnly
        return gateway
    }

    func feed(conninfo: String) -> FeedConfiguration {
        var rhythm = Doorbell.Rhythm()
        rhythm.safety = .seconds(safetyPollSeconds)
        return FeedConfiguration(
            conninfo: conninfo, node: nodeName, retention: .seconds(retentionHours * 3600), rhythm: rhythm)
    }

    var logger: Logger {
        var logger = Logger(label: "roost") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = Logger.Level(rawValue: logLevel) ?? .info
        return logger
    }
}
