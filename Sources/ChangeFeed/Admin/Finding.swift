/// What a check found.
package struct Finding: Sendable, Equatable {
    package enum Severity: String, Sendable { case good, warning, error }

    package let severity: Severity
    package let subject: String
    /// One sentence; where something is wrong, it says what to do.
    package let message: String

    package init(_ severity: Severity, _ subject: String, _ message: String) {
        self.severity = severity
        self.subject = subject
        self.message = message
    }
}
