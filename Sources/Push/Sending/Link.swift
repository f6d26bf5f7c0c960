/// One connection, as far as decisions go.
struct Link {
    enum State {
        case connecting
        case open
        /// It takes nothing new, and ends with its last request.
        case retired
    }

    var state = State.connecting
    var inFlight = 0
    /// With a provider token APNs wants one request at a time until the first is answered, whatever its settings say.
    var hasAnswered = false
    /// Requests without an answer since the last answer.
    var timeouts = 0
    /// When something came from the peer last, in monotonic milliseconds.
    var heard: Int64
    /// Since when answers are due, in monotonic milliseconds.
    var owed: Int64 = 0
    /// When a ping was sent that was not answered yet.
    var pinged: Int64?

    init(at now: Int64) { heard = now }

    mutating func hear(at now: Int64) {
        heard = now
        pinged = nil
    }
}
