package import Hub
package import Wire

/// One notification, ready to be sent.
package struct Push: Sendable {
    package let id: PushID
    package let target: Target
    package let type: PushType
    /// `apns-priority`. 10: now; 5: when it suits the phone's battery; 1: when nothing else needs doing.
    package let priority: Int
    /// The time until which APNs keeps it for a phone that is off, in seconds since 1970; 0: one attempt.
    package let expiration: Int64
    /// The phone shows only the newest notification with the same id. See `CollapseID.fitting`.
    package let collapseID: String?
    /// The final JSON in the format of the kind. The parts that depend on the one device, such as its token or its encryption, are
    /// added on sending.
    package internal(set) var payload: [UInt8]
    /// Notifications of one lane leave one after the other, in the order in which they were added.
    package let lane: Name
    /// Whether this one replaces an earlier one of the same lane that has not left yet.
    package let replaces: Bool
    /// Whether it is sent again, under the same id, after it left and was never answered. Not for Live Activities: a state may be old
    /// by then, so they end `.unanswered`, and the owner of the state sends the latest. Nor for services that know no ids.
    package let resendsWhenUnanswered: Bool
    /// The time after which it is not worth sending, in milliseconds since 1970.
    package internal(set) var deadline: Int64
    /// The time when the device was registered, in milliseconds since 1970, if known: a device that its service no longer knows is
    /// dropped unless it was registered again since.
    package let registeredAt: Int64?
    /// The keys that encrypt it for a browser.
    package let keys: WebPushKeys?
    /// The environment in which APNs knew the token, if it is not the target's.
    package internal(set) var foundEnvironment: PushEnvironment?

    /// - Parameters:
    ///   - priority: 10, 5 or 1.
    ///   - lane: nil for a lane that only this target has.
    ///   - resendsWhenUnanswered: nil for the default: everything but Live Activities is sent to APNs again.
    package init(
        id: PushID = PushID(), to target: Target, type: PushType, priority: Int, expiration: Int64,
        collapseID: String? = nil, payload: [UInt8], lane: Name? = nil, replaces: Bool = false,
        resendsWhenUnanswered: Bool? = nil, registeredAt: Int64? = nil, keys: WebPushKeys? = nil, deadline: Int64
    ) {
        self.id = id
        self.target = target
        self.type = type
        self.priority = priority
        self.expiration = expiration
        self.collapseID = collapseID
        self.payload = payload
        self.lane = lane ?? target.lane
        self.replaces = replaces
        self.resendsWhenUnanswered = resendsWhenUnanswered ?? (type != .liveActivity && target.kind == .apns)
        self.registeredAt = registeredAt
        self.keys = keys
        self.deadline = deadline
    }
}

extension Push.Target {
    fileprivate var lane: Name {
        switch self {
        case .device(let destination): Name(destination.token.text)
        case .channel(let id, _, let bundle): Name("\(bundle)/\(id)")
        }
    }
}

extension Push {
    /// The recipient of a notification.
    package enum Target: Sendable, Hashable {
        case device(PushDestination)
        /// Every activity that follows a channel (iOS 18, "Sending broadcast push notification requests to APNs").
        case channel(id: Name, environment: PushEnvironment, bundle: Name)
    }
}

extension Push {
    package var kind: PushKind { target.kind }
}

extension Push.Target {
    package var kind: PushKind {
        switch self {
        case .device(let destination): destination.kind
        case .channel: .apns
        }
    }

    package var environment: PushEnvironment {
        switch self {
        case .device(let destination): destination.environment
        case .channel(_, let environment, _): environment
        }
    }
}

/// The type of a notification. APNs requires it (`apns-push-type`), and refuses a payload that contradicts it.
package enum PushType: String, Sendable, CaseIterable {
    /// Shown to the user.
    case alert
    /// Wakes the app, and never has priority 10.
    case background
    case liveActivity = "liveactivity"

    /// The suffix of the bundle id in `apns-topic`.
    var topicSuffix: String {
        switch self {
        case .alert, .background: ""
        case .liveActivity: ".push-type.liveactivity"
        }
    }
}
