/// What the state machines are told of the world with each input.
package struct Instant {
    package let now: Moment
    /// The wall clock, in seconds since 1970: for tokens only.
    package let unix: Double
    /// In 0..<1.
    package let random: Double

    package init(now: Moment, unix: Double, random: Double) {
        self.now = now
        self.unix = unix
        self.random = random
    }
}
