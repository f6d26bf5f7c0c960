/// The answer of a push service to a request.
struct Answer: Equatable {
    let status: Int
    /// The reason given by the service; empty if there is none.
    var reason: String
    /// The time when the token became invalid, in milliseconds since 1970, if the service reports it.
    var timestamp: Int64?
    /// The time by the server's clock, in milliseconds since 1970.
    let date: Int64?
    /// The wait before the next attempt, in milliseconds.
    var retryAfter: Int64?
    /// The body as received, cut at some kilobytes.
    let body: [UInt8]

    init(
        status: Int, reason: String = "", timestamp: Int64? = nil, date: Int64? = nil, retryAfter: Int64? = nil,
        body: [UInt8] = []
    ) {
        self.status = status
        self.reason = reason
        self.timestamp = timestamp
        self.date = date
        self.retryAfter = retryAfter
        self.body = body
    }

    /// Returns a reason as it may appear in logs and metrics: short and plain ASCII.
    static func printable(_ reason: String) -> String {
        String(decoding: reason.utf8.lazy.filter { (0x20...0x7E).contains($0) }.prefix(80), as: UTF8.self)
    }
}

/// The reasons that a service documents. Others are passed on as they come, but counted together: a server must not be able to create
/// any number of names in a metric.
struct KnownReasons {
    let all: Set<String>

    /// The name under which an answer is counted.
    func name(of answer: Answer) -> String {
        if all.contains(answer.reason) { return answer.reason }
        return answer.reason.isEmpty ? "status \(answer.status)" : "other"
    }
}
