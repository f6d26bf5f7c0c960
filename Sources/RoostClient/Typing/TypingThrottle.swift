/// Which of the app's calls of `typing` are sent: the first, one a second while they go on, and the stop.
package struct TypingThrottle {
    /// The hub passes on one start a second and ends a typist after 3 s of silence.
    package static let interval: Duration = .seconds(1)

    private var sentAt: Moment?
    private var isTyping = false

    package init() {}

    /// Whether to send it.
    package mutating func says(_ isTyping: Bool, at now: Moment) -> Bool {
        guard isTyping else {
            defer { reset() }
            return self.isTyping
        }
        if self.isTyping, let sentAt, now - sentAt < Self.interval { return false }
        self.isTyping = true
        sentAt = now
        return true
    }

    /// The channel is lost, and the hub has ended our typing.
    package mutating func reset() {
        isTyping = false
        sentAt = nil
    }
}
