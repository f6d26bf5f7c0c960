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
