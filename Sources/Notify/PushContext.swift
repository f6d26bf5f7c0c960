import Hub
import Logging

/// What a desk is made with.
struct DeskSetup: Sendable {
    let conninfo: String
    let rules: PushRules
    let whereabouts: Whereabouts
    let logger: Logger
    let clock: @Sendable () -> HubTime
    let show: @Sendable (ActivitySummary) -> Void
}
