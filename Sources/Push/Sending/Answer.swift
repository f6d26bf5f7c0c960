import Wire

/// What APNs said to a request.
struct Answer: Equatable {
    let status: Int
    /// Empty where APNs gave none.
    let reason: String
    /// With a 410: when the token stopped to be good, in milliseconds since 1970.
    let timestamp: Int64?
    /// The server's clock, in milliseconds since 1970.
    let date: Int64?

    init(status: Int, reason: String = "", timestamp: Int64? = nil, date: Int64? = nil) {
        self.status = status
        self.reason = reason
        self.timestamp = timestamp
        self.date = date
    }

    init(status: Int, body: [UInt8], date: String) {
        let json: JSON?
        // What is no JSON comes from something between us and APNs: there is its status to go by.
        do { json = try JSON(parsing: body) } catch { json = nil }
        self.init(
            status: status, reason: json?["reason"]?.string.map { Self.printable($0) } ?? "",
            timestamp: json?["timestamp"]?.int.map(Int64.init), date: HTTPDate.milliseconds(date))
    }

    /// Goes into logs and metrics, so it is kept short and plain.
    static func printable(_ reason: String) -> String {
        String(decoding: reason.utf8.lazy.filter { (0x20...0x7E).contains($0) }.prefix(80), as: UTF8.self)
    }
}
