import ChangeFeed
import DurableStreams
import Gateway
import HTTP
import Hub
import Logging
import Settings
import Wire

/// The configuration in the form of the gateway and the change feed.
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
        gateway.requiresFeed = requiresFeed
        gateway.descriptors = DescriptorRoom(limit: OpenFiles.limit)
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
        rules.requestsPerUser = requestsPerUser
        rules.trustedProxies = TrustedProxies(trustedProxies)
        rules.origins = AllowedOrigins(httpOrigins)
        rules.tokenCookie = httpTokenCookie
        rules.streamRoutes = streams.routes.compactMap { StreamRoute($0) }
        rules.pingAfter = Int32(pingAfter)
        rules.idleTimeout = Int32(idleTimeout)
        rules.bodyTimeout = Int32(bodyTimeout)
        return rules
    }

    private var limits: HubLimits {
        var limits = HubLimits()
        limits.connections = OpenFiles.sockets(wanted: connections, overTLS: tlsCertificate != nil)
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
        limits.tokenGrace = tokenGrace
        limits.historyBytesPerChannel = historyBytesPerChannel
        limits.historyBytes = historyBytes
        limits.historyBytesPerReturn = min(limits.historyBytesPerReturn, pendingBytesPerSocket / 2)
        return limits
    }

    func feedConfiguration(conninfo: String, receipts: ReceiptTables? = nil) -> FeedConfiguration {
        var rhythm = Doorbell.Rhythm()
        rhythm.safety = .seconds(safetyPollSeconds)
        var feed = FeedConfiguration(
            conninfo: conninfo, node: nodeName, retention: .seconds(retentionHours * 3600), rhythm: rhythm)
        feed.recoveryWindow = .seconds(recoveryWindowSeconds)
        feed.policySessions = policySessions
        feed.filters.mostForRow = undecidedFilters
        feed.readsWAL = capturesFromWAL
        feed.receiptTables = receipts
        return feed
    }

    /// A logger that writes to the log's standard output, and has its level.
    var logger: Logger { Logger(label: "roost") { _ in LineLogHandler(output: .standard) } }

    var drain: DrainTimes { DrainTimes(delaySeconds: drainDelaySeconds, seconds: drainSeconds) }
}

/// The configuration of presence and typing in the form of the hub.
extension RoostConfiguration {
    var presence: PresenceRules {
        var rules = PresenceRules()
        rules.windows = Self.gracePeriods(graceActive, graceInactive, graceBackground)
        rules.topics = graceTopics.map {
            (TopicPattern($0.pattern), Self.gracePeriods($0.active, $0.inactive, $0.background))
        }
        rules.listedMembers = listedMembers
        rules.listedBytes = listedBytes
        rules.totalBytes = totalListedBytes
        rules.payloadBytes = presenceBytes
        rules.mergeInterval = Int64(mergeMilliseconds)
        return rules
    }

    var typing: TypingRules {
        var rules = TypingRules()
        rules.isOn = typingEnabled
        rules.shown = typingShown
        rules.endings = typingEndedBy.compactMap { TypingRules.Ending($0) }
        return rules
    }

    private static func gracePeriods(_ active: Int, _ inactive: Int, _ background: Int) -> GracePeriods {
        GracePeriods(
            active: Int64(active) * 1000, inactive: Int64(inactive) * 1000, background: Int64(background) * 1000)
    }
}

/// The configured certificate.
extension RoostConfiguration {
    /// The scheme of the WebSocket's address (RFC 6455, section 3).
    var socketScheme: String { tlsCertificate == nil ? "ws" : "wss" }

    var pageScheme: String { tlsCertificate == nil ? "http" : "https" }

    /// - Throws: `RunFailure` if the configured certificate cannot be used.
    func checkCertificate() throws {
        guard let files = certificateFiles else { return }
        do { _ = try Certificate(files) } catch { throw RunFailure("\(error)", .configuration) }
    }

    /// The certificate, which is reloaded when its files change; nil if none is configured. Throws if it cannot be
    /// used, so that the hub does not start.
    func openCertificate(logger: Logger) throws -> CertificateRefresher? {
        guard let files = certificateFiles else { return nil }
        do {
            return try CertificateRefresher(files, logger: logger)
        } catch {
            throw RunFailure("\(error)", .configuration)
        }
    }

    var certificateFiles: CertificateFiles? {
        guard let tlsCertificate, let tlsKey else { return nil }
        return CertificateFiles(certificate: tlsCertificate, key: tlsKey)
    }
}
