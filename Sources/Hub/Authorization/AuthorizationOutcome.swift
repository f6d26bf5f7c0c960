/// The answer to an `AuthorizationQuestion`.
package enum AuthorizationOutcome: Sendable {
    /// The extensions for which it is a yes; none means denied. `replay` is oldest first, and empty where none was asked
    /// for or broadcasts may not be read.
    case decided(ChannelExtensions, replay: [ReplayedMessage] = [])
    /// The rights are known, but the messages could not be read.
    case replayFailed
    /// The policies could not be asked; the client is told to come again. Never a yes.
    case unavailable
}
