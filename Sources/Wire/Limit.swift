/// A limit that the hub answers with an error, by the name that its setting, its errors and its metric share.
///
/// The original has codes for some of them; its clients know those by their beginning (PyPI realtime waits 30 s before
/// it joins again after a reason that starts with `ConnectionRateLimitReached`, `ChannelRateLimitReached` or
/// `ClientJoinRateLimitReached`), so the sentence comes behind the code.
package enum Limit: String, Sendable, CaseIterable {
    case connections
    case connectionsPerAddress = "connections_per_address"
    case connectionsPerUser = "connections_per_user"
    case channelsPerConnection = "channels_per_connection"
    case filtersPerChannel = "filters_per_channel"
    case patternsPerConnection = "patterns_per_connection"
    case messageBytes = "message_bytes"
    case payloadBytes = "payload_bytes"
    case joinsPerSecond = "joins_per_second"
    case presencePerSecond = "presence_per_second"
    case presenceBytes = "presence_bytes"

    /// As `config/roost.yaml` has it.
    package var setting: String { "limits." + rawValue }

    /// What `response.reason` begins with.
    var code: String {
        switch self {
        case .connections, .connectionsPerAddress, .connectionsPerUser: "ConnectionRateLimitReached"
        case .channelsPerConnection: "ChannelRateLimitReached"
        case .filtersPerChannel, .patternsPerConnection: "InvalidPostgresChanges"
        case .messageBytes: "message_size_exceeded"
        case .payloadBytes, .presenceBytes: "payload_size_exceeded"
        case .joinsPerSecond: "ClientJoinRateLimitReached"
        case .presencePerSecond: "ClientPresenceRateLimitReached"
        }
    }

    /// What is too much, what is allowed, and what to do.
    func sentence(_ value: Int) -> String {
        switch self {
        case .connections: "Too many connected users: this hub takes \(value) sockets (\(setting)); try again later"
        case .connectionsPerAddress:
            "Too many connected users: one address may have \(value) sockets (\(setting)); close another first"
        case .connectionsPerUser:
            "Too many connected users: one user may have \(value) sockets (\(setting)); close another first"
        case .channelsPerConnection: "Too many channels: one socket may join \(value) (\(setting)); leave one first"
        case .filtersPerChannel:
            "Too many postgres_changes: one join may have \(value) (\(setting)); spread them over several channels"
        case .patternsPerConnection:
            "Too many patterns: the filters of one socket may have \(value) of like, ilike, match and imatch (\(setting)); "
                + "filter in the client, or leave a channel first"
        case .messageBytes: "The message is too large: it may have \(value) bytes (\(setting)); send less"
        case .payloadBytes: "The payload is too large: it may have \(value) bytes (\(setting)); send less"
        case .presenceBytes:
            "The presence payload is too large: it may have \(value) bytes (\(setting)); send less"
        case .joinsPerSecond:
            "Too many joins per second: one socket may make \(value) (\(setting)); join again later"
        case .presencePerSecond:
            "Too many presence messages per second: one socket may send \(value) (\(setting)); send again later"
        }
    }

    var nextAction: Refusal.NextAction {
        switch self {
        case .connections, .connectionsPerAddress, .connectionsPerUser, .joinsPerSecond, .presencePerSecond: .retry
        case .channelsPerConnection, .filtersPerChannel, .patternsPerConnection, .messageBytes, .payloadBytes,
            .presenceBytes:
            .giveUp
        }
    }
}
