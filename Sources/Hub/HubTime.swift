/// The time as the hub is told it. `Hub` has no clock of its own: tests move time by hand.
package struct HubTime: Sendable, Equatable {
    /// Milliseconds on a clock that never goes back.
    package var monotonic: Int64
    /// Milliseconds since 1970.
    package var unix: Int64

    package init(monotonic: Int64, unix: Int64) {
        self.monotonic = monotonic
        self.unix = unix
    }

    package func advanced(by milliseconds: Int64) -> HubTime {
        HubTime(monotonic: monotonic + milliseconds, unix: unix + milliseconds)
    }
}
