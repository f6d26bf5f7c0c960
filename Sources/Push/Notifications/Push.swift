package import Hub

/// One notification, ready to be sent.
package struct Push: Sendable {
    package let id: PushID
    package let target: Target
    package let kind: PushKind
    /// 10: now; 5: when it suits the phone's battery; 1: when nothing else is to be done.
    package let priority: Int
    /// Until when APNs keeps it for a phone that is off, in seconds since 1970; 0: one attempt.
    package let expiration: Int64
    /// Of the notifications with the same one, the phone shows the newest. See `CollapseID.fitting`.
    package let collapseID: String?
    /// The final JSON.
    package let payload: [UInt8]
    /// Notifications of one lane go out one after the other, in the order they were given.
    package let lane: String
    /// One of the same lane that has not left yet gives way to this one.
    package let replaces: Bool
    /// Whether it goes again, under the same id, when it left and was never answered. Not for Live Activities: a state may
    /// be old by then, so they end `.unanswered`, and whoever keeps the state sends the latest.
    package let resendsWhenUnanswered: Bool
    /// When it is not worth sending any more, in milliseconds since 1970.
    package let deadline: Int64

    /// - Parameters:
    ///   - priority: 10, 5 or 1.
    ///   - lane: nil for a lane of the target's own.
    ///   - resendsWhenUnanswered: nil for what fits the kind.
    package init(
        id: PushID = PushID(), to target: Target, kind: PushKind, priority: Int, expiration: Int64,
        collapseID: String? = nil, payload: [UInt8], lane: String? = nil, replaces: Bool = false,
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
    fileprivate var lane: String {
        switch self {
        case .device(let destination): destination.token.hex
        case .channel(let id, _, let bundle): bundle + "/" + id
        }
    }
}

extension Push {
    /// Who gets it.
    package enum Target: Sendable, Hashable {
        case device(PushDestination)
        /// Everybody who follows a channel (iOS 18, "Sending broadcast push notification requests to APNs").
        case channel(id: String, environment: PushEnvironment, bundle: String)
    }
}

extension Push.Target {
    package var environment: PushEnvironment {
        switch self {
        case .device(let destination): destination.environment
        case .channel(_, let environment, _): environment
        }
    }

    /// The most bytes of JSON that APNs takes ("Generating a remote notification", "Sending broadcast push notification
    /// requests to APNs").
    package var payloadLimit: Int {
        switch self {
        case .device: 4096
        case .channel: 5120
        }
    }
}

/// What a notification is; APNs wants to be told (`apns-push-type`), and refuses what the payload contradicts.
package enum PushKind: String, Sendable, CaseIterable {
    /// Shown to the user.
    case alert
    /// Wakes the app; never with priority 10.
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
    /// What it comes to without being sent; nil where it can be sent.
    ///
    /// The reasons are those that APNs would give.
    var outcomeUnsent: PushOutcome? {
        if payload.isEmpty { return .refused(status: 400, reason: "PayloadEmpty") }
        if payload.count > target.payloadLimit { return .tooLarge(bytes: payload.count, limit: target.payloadLimit) }
        if let collapseID, collapseID.utf8.count > CollapseID.limit || !Self.fitsHeader(collapseID) {
            return .refused(status: 400, reason: "BadCollapseId")
        }
        switch target {
        case .device(let destination):
            return Self.fitsHeader(destination.bundle) ? nil : .refused(status: 400, reason: "BadTopic")
        case .channel(let id, _, let bundle):
            guard Self.fitsHeader(bundle), !bundle.utf8.contains(UInt8(ascii: "/")) else {
                return .refused(status: 400, reason: "BadTopic")
            }
            return Self.fitsHeader(id) ? nil : .refused(status: 400, reason: "BadChannelId")
        }
    }

    /// Also nothing that could end a header and begin another.
    private static func fitsHeader(_ value: String) -> Bool {
        !value.isEmpty && value.utf8.count <= 256 && value.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}
