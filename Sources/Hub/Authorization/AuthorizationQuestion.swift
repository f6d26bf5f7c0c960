package import Wire

/// One question of a loop; never used twice, so that a late answer finds nobody.
package struct AuthorizationID: Hashable, Sendable {
    package let loop: Int
    package let serial: Int

    package init(loop: Int, serial: Int) {
        self.loop = loop
        self.serial = serial
    }
}

/// What the policies on `realtime.messages` are asked.
package struct AuthorizationQuestion: Sendable {
    package let claims: Claims
    /// Without its prefix, as `realtime.topic()` gives it.
    package let topic: String
    package let right: Right

    package enum Right: Sendable, Equatable {
        /// Which extensions may be read. With a replay, what is to be replayed to a reader of broadcasts, too; it is read
        /// no earlier than the policies.
        case read(replay: ReplayRequest?)
        /// Which of these may be written.
        case write(ChannelExtensions)
    }

    package init(claims: Claims, topic: String, right: Right) {
        self.claims = claims
        self.topic = topic
        self.right = right
    }
}

/// What the policies of a private channel tell apart: the values of `realtime.messages.extension` (wire-protocol B), and one of our
/// own for streams.
package struct ChannelExtensions: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let broadcast = ChannelExtensions(rawValue: 1)
    package static let presence = ChannelExtensions(rawValue: 2)
    /// To end a stream that somebody else writes.
    package static let cancel = ChannelExtensions(rawValue: 4)
    /// To have broadcasts kept as rows of `realtime.messages` (supabase/realtime PR 2022).
    package static let persistence = ChannelExtensions(rawValue: 8)
    /// Those that a channel's members may read.
    package static let all: ChannelExtensions = [.broadcast, .presence]
}

/// The answer to an `AuthorizationQuestion`.
package enum AuthorizationOutcome: Sendable {
    /// The extensions for which it is a yes; none means denied. `replay` is oldest first, and empty where none was asked
    /// for or broadcasts may not be read.
    case decided(ChannelExtensions, replay: [ReplayedMessage] = [])
    /// The rights are known, but the messages could not be read.
    case replayFailed
    /// A policy met an error on it: a no, of which the client is told that it is none of the policy's.
    case failed(PolicyFault)
    /// The policies could not be asked; the client is told to come again. Never a yes.
    case unavailable
}

extension AuthorizationOutcome {
    /// What is allowed by it; nil where nothing is known.
    package var extensions: ChannelExtensions? {
        switch self {
        case .decided(let extensions, _): extensions
        case .failed: []
        case .replayFailed, .unavailable: nil
        }
    }
}

/// Who decides about private channels, as the loops see it.
package protocol ChannelAuthority: Sendable {
    /// Answers once, from any thread and possibly before it returns; called on a loop's thread, so it must not wait. What
    /// cannot be decided soon is answered `unavailable`.
    func decide(_ question: AuthorizationQuestion, answer: @escaping @Sendable (AuthorizationOutcome) -> Void)
}
