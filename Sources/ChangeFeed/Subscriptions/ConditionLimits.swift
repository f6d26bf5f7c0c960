import Postgres

/// How long clients' filters may take in Postgres. The changes of their own subscriptions wait for them, and no others.
///
/// The server ends a statement at the time given here (`statement_timeout`); the hub waits for `network` beyond that before
/// it cancels the statement and drops the session.
package struct ConditionLimits: Sendable {
    /// How many filters Postgres may have to decide for one row; more end, those of whom has the most.
    package var mostForRow = 1000
    /// Questions that are asked together, and what each of them adds: 1,000 take 56 ms where none is costly.
    package var together = Duration.seconds(1)
    package var perQuestion = Duration.milliseconds(1)
    /// The questions of one filter, asked apart, where it is not known which of many takes long.
    package var apart = Duration.milliseconds(250)
    /// All that are asked apart in one round; filters that are not reached are given up.
    package var allApart = Duration.seconds(3)
    /// A filter of a new subscription, whose values Postgres reads.
    package var validation = Duration.seconds(1)
    /// What connecting and the network may take on top.
    package var network = Duration.seconds(2)

    /// Questions asked together that take longer than this are asked apart from then on, to find whose time it is.
    package var suspicious = Duration.milliseconds(10)
    package var suspiciousPerQuestion = Duration.microseconds(100)
    /// A filter is cheap that takes no more than this for a round's rows.
    package var cheap = Duration.milliseconds(1)
    package var cheapPerQuestion = Duration.microseconds(50)
    /// How long a filter that was found to be cheap is not suspected again.
    package var trust = Duration.seconds(2)
    /// Time of Postgres' that costly filters may use at once, all together, and for how much of the time.
    package var budget = Duration.milliseconds(500)
    package var share = 0.1
    /// What all filters may take for a row where they are more than Postgres can decide.
    package var eachRow = Duration.milliseconds(1)
    /// How long a filter that was given up because of its cost is refused when it comes again.
    package var refusal = Duration.seconds(600)

    package init() {}
}
