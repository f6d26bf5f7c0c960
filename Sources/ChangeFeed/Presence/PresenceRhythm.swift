/// How often presence is written, and how long its ends may take.
package struct PresenceRhythm: Sendable {
    /// Between two looks at what is to be written.
    package var beat: Duration = .seconds(1)
    /// Between two signs of life while users are online: so wrong may be when they were last seen, if the hub is killed.
    /// Nil: it gives none.
    package var signOfLife: Duration? = .seconds(15)
    /// The longest first wait after a failure; doubled up to 15 s.
    package var firstRetry: Duration = .seconds(1)
    /// For reading at start-up whom the last process served, connecting included.
    package var restoring: Duration = .seconds(3)
    /// For writing the rest when the hub stops.
    package var stopping: Duration = .seconds(2)

    package init() {}
}
