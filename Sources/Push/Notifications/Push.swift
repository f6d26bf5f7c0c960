package import Hub
package import Wire

/// One notification, ready to be sent.
package struct Push: Sendable {
    package let id: PushID
    package let target: Target
    package let kind: PushKind
    /// `apns-priority`. 10: now; 5: when it suits the phone's battery; 1: when nothing else is to be done.
    package let priority: Int
    /// Until when APNs keeps it for a phone that is off, in seconds since 1970; 0: one attempt.
    package let expiration: Int64
    /// The phone shows only the newest of the notifications that have the same one. See `CollapseID.fitting`.
    package let collapseID: String?
    /// The final JSON.
    package let payload: [UInt8]
    /// Notifications of one lane go out one after the other, in the order they were given.
    package let lane: Name
    /// Whether one of the same lane that has not left yet gives way to this one.
    package let replaces: Bool
    /// Whether it goes again, under the same id, when it left and was never answered. Not for Live Activities: a state
    /// may be old by then, so they end `.unanswered`, and whoever keeps the state sends the latest.
    package let resendsWhenUnanswered: Bool
    /// When it is not worth sending any more, in milliseconds since 1970.
    package let deadline: Int64
    /// The environment in which APNs knew the token, if that is not the target's.
    package internal(set) var foundEnvironment: PushEnvironment?

    /// - Parameters:
    ///   - priority: 10, 5 or 1.
    ///   - lane: nil for a lane that only this target has.
    ///   - resendsWhenUnanswered: nil for the default of the kind: all but Live Activities are sent again.
    package init(
        id: PushID = PushID(), to target: Target, kind: PushKind, priority: Int, expiration: Int64,
        collapseID: String? = nil, payload: [UInt8], lane: Name? = nil, replaces: Bool = false,
        resendsWhenUnanswered: Bool? = nil, deadline: Int64
    ) {
        self.id = id
        self.target = target
        self.kind = kind
        self.priority = priority
        self.expiration = expiration
        self.collapseID = collapseID
        self.payload = payload
        self.lane = lane ?? target.lane
        self.replaces = replaces
        self.resendsWhenUnanswered = resendsWhenUnanswered ?? (kind != .liveActivity)
        self.deadline = deadline
    }
}

extension Push.Target {
    fileprivate var lane: Name {
        switch self {
        case .device(let destination): Name(destination.token.hex)
        case .channel(let id, _, let bundle): Name("\(bundle)/\(id)")
        }
    }
}

extension Push {
    /// Who gets a notification.
    package enum Target: Sendable, Hashable {
        case device(PushDestination)
        /// Everybody who follows a channel (iOS 18, "Sending broadcast push notification requests to APNs").
        case channel(id: Name, environment: PushEnvironment, bundle: Name)
    }
}

extension Push.Target {
    package var environment: PushEnvironment {
        switch self {
        case .device(let destination): destination.environment
        case .channel(_, let environment, _): environment
        }
    }

    /// The most bytes of JSON that APNs takes.
    package var payloadLimit: Int {
        switch self {
        case .device: PayloadLimit.device
        case .channel: PayloadLimit.channel
        }
    }
}

/// What a notification is. APNs wants to be told (`apns-push-type`), and refuses a payload that contradicts it.
package enum PushKind: String, Sendable, CaseIterable {
    /// Shown to the user.
    case alert
    /// Wakes the app, and never has priority 10.
    case background
    case liveActivity = "liveactivity"

    /// What follows the bundle id in `apns-topic`.
    var topicSuffix: String {
        switch self {
        case .alert, .background: ""
        case .liveActivity: ".push-type.liveactivity"
        }
    }
}

extension Push {
    /// The outcome of a notification that APNs would certainly refuse, with the reason that APNs would give; nil where
    /// it can be sent.
    var outcomeUnsent: PushOutcome? {
        if payload.isEmpty { return .refused(status: 400, reason: "PayloadEmpty") }
        if payload.count > target.payloadLimit { return .tooLarge(bytes: payload.count, limit: target.payloadLimit) }
        if let collapseID, collapseID.utf8.count > CollapseID.limit || !Self.fitsHeader(collapseID) {
            return .refused(status: 400, reason: "BadCollapseId")
        }
        switch target {
        case .device(let destination):
            return Self.fitsHeader(destination.bundle.text) ? nil : .refused(status: 400, reason: "BadTopic")
        case .channel(let id, _, let bundle):
            guard Self.fitsHeader(bundle.text), !bundle.utf8.contains(UInt8(ascii: "/")) else {
                return .refused(status: 400, reason: "BadTopic")
            }
            return Self.fitsHeader(id.text) ? nil : .refused(status: 400, reason: "BadChannelId")
        }
    }

    /// Whether a text can be the value of a header. It has nothing that could end one header and begin another.
    private static func fitsHeader(_ value: String) -> Bool {
        !value.isEmpty && value.utf8.count <= 256 && value.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}
