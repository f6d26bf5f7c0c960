/// How long a lost connection is nobody's business: a UI is not told of a shorter loss.
///
/// The defaults are the hub's own, so that a user is shown as away to others when the user's own app says so, too.
public struct GraceWindows: Sendable, Equatable {
    public var active: Duration
    public var inactive: Duration
    public var background: Duration

    public init(
        active: Duration = .seconds(2), inactive: Duration = .seconds(12), background: Duration = .seconds(20)
    ) {
        self.active = active
        self.inactive = inactive
        self.background = background
    }

    /// The window of a state.
    public subscript(state: AppState) -> Duration {
        switch state {
        case .active: active
        case .inactive: inactive
        case .background: background
        }
    }
}
