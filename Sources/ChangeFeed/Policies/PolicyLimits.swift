import Postgres

/// How long policies may think. A feed waits for them, and everybody's changes with it.
package struct PolicyLimits: Sendable {
    /// One question, all its subjects.
    package var question = Duration.seconds(2)
    /// One subject, where its question took longer.
    package var subject = Duration.milliseconds(250)
    /// All the subjects of a question that took longer; who is not reached sees nothing.
    package var subjects = Duration.seconds(2)
    /// Questions that are asked together, beyond which each is asked alone, on a connection of its own: a session that
    /// hangs looks like one that has much to think about.
    package var together = Duration.seconds(3)
    /// What connecting, the network and the catalog may take on top.
    package var network = Duration.seconds(5)

    package init() {}
}
