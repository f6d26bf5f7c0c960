/// Whether a row meets a filter.
package enum Verdict: Sendable, Equatable {
    case match
    case noMatch
    /// Only Postgres can tell.
    case unknown
}
