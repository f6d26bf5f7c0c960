package import Wire

/// Identifies one question of a loop. Never reused, so a late answer matches nothing.
package struct AuthorizationID: Hashable, Sendable {
    package let loop: Int
    package let serial: Int

    package init(loop: Int, serial: Int) {
        self.loop = loop
        self.serial = serial
    }
}

/// A question put to the policies on `realtime.messages`.
package struct AuthorizationQuestion: Sendable {
    package let claims: Claims
    /// The topic without its prefix, as `realtime.topic()` returns it.
    package let topic: String
    package let right: Right

    package enum Right: Sendable, Equatable {
        /// Asks which extensions may be read. With a replay, also fetches the messages to replay, if broadcasts may be
        /// read; they are read no earlier than the policies.
        case read(replay: ReplayRequest?)
        /// Asks which of these extensions may be written.
        case write(ChannelExtensions)
    }

    package init(claims: Claims, topic: String, right: Right) {
        self.claims = claims
        self.topic = topic
        self.right = right
    }
}

/// The rights that the policies of a private channel distinguish: the values of `realtime.messages.extension`
/// (wire-protocol B), and one of our own for streams.
package struct ChannelExtensions: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let broadcast = ChannelExtensions(rawValue: 1)
    package static let presence = ChannelExtensions(rawValue: 2)
    /// Cancelling a stream that another client writes.
    package static let cancel = ChannelExtensions(rawValue: 4)
    /// Storing broadcasts as rows of `realtime.messages` (supabase/realtime PR 2022).
    package static let persistence = ChannelExtensions(rawValue: 8)
    /// All rights that can be granted for reading.
    package static let all: ChannelExtensions = [.broadcast, .presence]
}

/// The answer to an `AuthorizationQuestion`.
package enum AuthorizationOutcome: Sendable {
    /// The allowed extensions; none means denied. `replay` is oldest first, and empty if none was requested or
    /// broadcasts may not be read.
    case decided(ChannelExtensions, replay: [ReplayedMessage] = [])
    /// The rights are known, but the messages to replay could not be read.
    case replayFailed
    /// A policy raised an error: counts as a no, but the client is told that the policy failed.
    case failed(PolicyFault)
    /// The policies could not be asked; the client is told to try again. Never counts as a yes.
    case unavailable
}

extension AuthorizationOutcome {
    /// The allowed extensions; nil if nothing is known.
    package var extensions: ChannelExtensions? {
        switch self {
        case .decided(let extensions, _): extensions
        case .failed: []
        case .replayFailed, .unavailable: nil
        }
    }
}

/// The authority on private channels, as the loops see it.
package protocol ChannelAuthority: Sendable {
    /// Answers once, from any thread and possibly before returning. Called on a loop's thread, so it must not block. A
    /// question that cannot be decided soon is answered with `unavailable`.
    func decideQuestion(_ question: AuthorizationQuestion, answer: @escaping @Sendable (AuthorizationOutcome) -> Void)
}
