/// Counters since the keeper was made, and what waits.
package struct PresenceStatistics: Sendable, Equatable {
    /// Looks at what is to be written.
    package var beats = 0
    /// Statements that wrote presences.
    package var batches = 0
    /// Presences that those wrote or deleted; one that changes twice counts twice.
    package var rows = 0
    /// Presences that Postgres refused; they are not there after a restart.
    package var refusedRows = 0
    /// Transactions that told the application of users.
    package var transactions = 0
    /// Transitions that were settled: told to the application, or found to be no news to it.
    package var transitions = 0
    /// Transitions that the application's statement refused.
    package var refusedTransitions = 0
    /// Connections that were lost or not made, and batches that have to be tried again.
    package var failures = 0
    /// How long the oldest word has been waiting to be written; nil where none does for longer than a beat.
    package var oldestWaiting: Duration?

    package init() {}
}
