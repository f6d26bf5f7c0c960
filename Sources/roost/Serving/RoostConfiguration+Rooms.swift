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
        gateway.usesIOUring = ioUring
        gateway.maximumMessageBytes = messageBytes
        gateway.pendingBytesPerSocket = pendingBytesPerSocket
        gateway.failuresPerMinute = failuresPerMinute
        gateway.pingAfter = Int32(pingAfter)
        gateway.idleTimeout = Int32(idleTimeout)
        gateway.book = RecoveryBook(window: Int64(recoveryWindowSeconds) * 1000)
        gateway.limits = limits
        gateway.limits.historyBytesPerReturn = min(limits.historyBytesPerReturn, pendingBytesPerSocket / 2)
        gateway.history = HistoryBook(limits: gateway.limits, window: Int64(recoveryWindowSeconds) * 1000)
        gateway.presence = presence
        gateway.typing = typing
        gateway.presenceLog = PresenceLog()
        return gateway
    }

    private var limits: HubLimits {
        var limits = HubLimits()
        limits.connections = OpenFiles.sockets(wanted: connections)
        limits.connectionsPerAddress = connectionsPerAddress
        limits.connectionsPerUser = connectionsPerUser
        limits.channelsPerConnection = channelsPerConnection
        limits.filtersPerChannel = filtersPerChannel
        limits.joinsPerSecond = joinsPerSecond
        limits.presencePerSecond = presencePerSecond
        limits.messagesPerSecond = messagesPerSecond
        limits.bytesPerSecond = bytesPerSecond
        limits.payloadBytes = payloadBytes
        limits.privateOnly = privateOnly
        limits.historyMessages = historyMessages
        limits.historySeconds = historySeconds
        limits.historyBytesPerChannel = historyBytesPerChannel
        limits.historyBytes = historyBytes
        return limits
    }

    func feed(conninfo: String) -> FeedConfiguration {
        var rhythm = Doorbell.Rhythm()
        rhythm.safety = .seconds(safetyPollSeconds)
        var feed = FeedConfiguration(
            conninfo: conninfo, node: nodeName, retention: .seconds(retentionHours * 3600), rhythm: rhythm)
        feed.recoveryWindow = .seconds(recoveryWindowSeconds)
        return feed
    }

    var logger: Logger {
        var logger = Logger(label: "roost") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = Logger.Level(rawValue: logLevel) ?? .info
        return logger
    }
}
