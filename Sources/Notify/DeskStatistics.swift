package import Push

/// What a desk has done since it was made.
package struct DeskStatistics: Sendable {
    /// Messages whose audience was asked for.
    package internal(set) var messages = 0
    /// Messages that nobody was told of: too many waited for the database, or it did not say in time who is to hear of them.
    package internal(set) var lostMessages = 0
    /// Alerts that were put into the queue.
    package internal(set) var alerts = 0
    /// That were handed over to be sent, to one phone each.
    package internal(set) var sentAlerts = 0
    /// That nobody had to get any more: their user came back, or their time was over, or there was no phone.
    package internal(set) var droppedAlerts = 0
    package internal(set) var activities = 0
    package internal(set) var book = ActivityStatistics()
    /// Tokens that Apple said are gone, and that were dropped.
    package internal(set) var droppedTokens = 0
    /// Times that the database refused, or was away.
    package internal(set) var failures = 0
}
