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
        gateway.socket = httpSocket
        gateway.socketMode = httpSocketMode
        gateway.opsHost = opsHost
        gateway.opsPort = opsPort
        gateway.loops = loops
        gateway.usesIOUring = ioUring
        gateway.rules = rules
        gateway.book = RecoveryBook(window: Int64(recoveryWindowSeconds) * 1000, isFeedReady: false)
        gateway.history = HistoryBook(limits: gateway.rules.limits, window: Int64(recoveryWindowSeconds) * 1000)
        gateway.presenceLog = PresenceLog()
        return gateway
    }

    var rules: GatewayRules {
        var rules = GatewayRules()
        rules.limits = limits
        rules.presence = presence
        rules.typing = typing
        rules.maximumMessageBytes = messageBytes
        rules.pendingBytesPerSocket = pendingBytesPerSocket
        rules.unfinishedBytes = unfinishedBytes
        rules.failuresPerMinute = failuresPerMinute
        rules.trustedProxies = TrustedProxies(trustedProxies)
        rules.origins = AllowedOrigins(httpOrigins)
        rules.pingAfter = Int32(pingAfter)
        rules.idleTimeout = Int32(idleTimeout)
        rules.bodyTimeout = Int32(bodyTimeout)
        return rules
    }

    private var limits: HubLimits {
        var limits = HubLimits()
        limits.connections = OpenFiles.sockets(wanted: connections)
        limits.connectionsPerAddress = connectionsPerAddress
        limits.connectionsPerUser = connectionsPerUser
        limits.channelsPerConnection = channelsPerConnection
        limits.filtersPerChannel = filtersPerChannel
        limits.patternsPerConnection = patternsPerConnection
        limits.regularExpressions = regularExpressions
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
        limits.historyBytesPerReturn = min(limits.historyBytesPerReturn, pendingBytesPerSocket / 2)
        return limits
    }

    func feed(conninfo: String) -> FeedConfiguration {
        var rhythm = Doorbell.Rhythm()
        rhythm.safety = .seconds(safetyPollSeconds)
        var feed = FeedConfiguration(
            conninfo: conninfo, node: nodeName, retention: .seconds(retentionHours * 3600), rhythm: rhythm)
        feed.recoveryWindow = .seconds(recoveryWindowSeconds)
        feed.filters.mostForRow = undecidedFilters
        return feed
    }

    /// Says what `log` was last told to say.
    var logger: Logger { Logger(label: "roost") { _ in LineLogHandler(output: .standard) } }

    var drain: DrainTimes { DrainTimes(delaySeconds: drainDelaySeconds, seconds: drainSeconds) }
}
