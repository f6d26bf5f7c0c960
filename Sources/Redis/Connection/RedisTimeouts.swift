/// How long a connection with Redis waits for what.
package struct RedisTimeouts: Sendable {
    /// For the look-up of a name and for TCP together.
    package var connect = Duration.milliseconds(1000)
    /// For a byte where something was asked. Nobody answers for so long that is alive.
    package var silence = Duration.milliseconds(1500)
    /// After so long without a byte and with nothing in flight a question is asked.
    package var ping = Duration.milliseconds(500)
    /// For the other side's kernel to acknowledge what was sent (TCP_USER_TIMEOUT).
    package var acknowledgement = Duration.milliseconds(5000)
    /// For all that a connection needs before it is ready, from a peer that answers slowly.
    package var setUp = Duration.milliseconds(10000)
    /// Before the first attempt after one that failed; it doubles with each.
    package var firstRetry = Duration.milliseconds(50)
    package var longestRetry = Duration.milliseconds(250)
    /// What lasted so long was a success, and the next retry is a first one.
    package var stable = Duration.milliseconds(1000)

    package init() {}
}
