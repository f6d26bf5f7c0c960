import Hub
import Logging

/// What a keeper works with.
struct PresenceSetup: Sendable {
    let conninfo: String
    let node: String
    let log: PresenceLog
    let users: UserPresence?
    let statement: String?
    let logger: Logger
    let rhythm: PresenceRhythm
    let leftOnline: @Sendable ([(user: String, seen: Int64)]) -> Void
}
