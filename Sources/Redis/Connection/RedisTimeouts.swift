/// The timeouts of a connection with Redis.
package struct RedisTimeouts: Sendable {
    /// For the name look-up and TCP together.
    package var connect = Duration.milliseconds(1000)
    /// For a byte after a request. Any living server answers sooner.
    package var silence = Duration.milliseconds(1500)
    /// A ping is sent after this time without a byte and with nothing in flight.
    package var ping = Duration.milliseconds(500)
    /// For the other side's kernel to acknowledge sent bytes (TCP_USER_TIMEOUT).
    package var acknowledgement = Duration.milliseconds(5000)
    /// For everything that a connection needs before it is ready, from a slow peer.
    package var setUp = Duration.milliseconds(10000)
    /// Before the first attempt after a failure; doubles with each further one.
    package var firstRetry = Duration.milliseconds(50)
    package var longestRetry = Duration.milliseconds(250)
    /// A connection that lasted this long was a success, so that the pauses start over.
    package var stable = Duration.milliseconds(1000)

    package init() {}
}
