package import Hub

/// What deciding who sees which rows took, since the start.
package struct VisibilityStatistics: Sendable {
    /// Decisions (a row and somebody who may see it) that Postgres was asked for.
    package internal(set) var asked = 0
    /// Decisions that a kept answer stood for.
    package internal(set) var kept = 0
    /// Round trips to Postgres.
    package internal(set) var roundTrips = 0
    /// How long each of them took.
    package internal(set) var time = Histogram.ofLatency

    package init() {}
}
