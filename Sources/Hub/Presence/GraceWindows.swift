/// How long a member that was cut off counts as present, in milliseconds, by the last state of its app.
package struct GraceWindows: Sendable, Equatable {
    package var active: Int64
    package var inactive: Int64
    package var background: Int64

    package init(active: Int64 = 2000, inactive: Int64 = 12_000, background: Int64 = 20_000) {
        self.active = active
        self.inactive = inactive
        self.background = background
    }

    /// Whoever is cut off is gone.
    package static let none = GraceWindows(active: 0, inactive: 0, background: 0)

    package subscript(state: AppState?) -> Int64 {
        switch state ?? .active {
        case .active: active
        case .inactive: inactive
        case .background: background
        }
    }
}
