import Documents
import Wire

/// The answer of APNs to a request.
struct Answer: Equatable {
    let status: Int
    /// The reason that APNs gave; empty where it gave none.
    let reason: String
    /// With the status 410: when the token stopped to be good, in milliseconds since 1970.
    let timestamp: Int64?
    /// The time by the server's clock, in milliseconds since 1970.
    let date: Int64?

    init(status: Int, reason: String = "", timestamp: Int64? = nil, date: Int64? = nil) {
        self.status = status
        self.reason = reason
        self.timestamp = timestamp
        self.date = date
    }

    init(status: Int, body: [UInt8], date: String) {
        let document: JSONDocument?
        // A body that is no JSON comes from something between us and APNs: its status has to do.
        do { document = try JSONDocument(parsing: body, limits: Self.limits) } catch { document = nil }
        self.init(
            status: status, reason: document?["reason"]?.string.map { Self.printable($0) } ?? "",
            timestamp: document?["timestamp"]?.int.map(Int64.init), date: HTTPDate.milliseconds(date))
    }

    /// Of a body; APNs' have some 60 bytes.
    private static let limits = JSONDocument.Limits(bytes: 65_536, depth: 8)

    /// A reason as it may stand in logs and metrics: short and plain ASCII.
    static func printable(_ reason: String) -> String {
        String(decoding: reason.utf8.lazy.filter { (0x20...0x7E).contains($0) }.prefix(80), as: UTF8.self)
    }
}

/// What follows from an answer (Apple, "Handling notification responses from APNs").
enum AnswerVerdict: Equatable {
    case delivered
    case unregistered(since: Int64?)
    case badToken
    /// This notification is never to be sent again.
    case refused
    /// The provider token is too old: the notification goes again with a newer one.
    case staleProviderToken
    /// Nothing sent with this key will be taken: the operator has to do something.
    case badKey
    /// The key is for the other environment alone.
    case keyOfOtherEnvironment
    /// The connection is not the right one for this key, or was silent for too long: the notification goes again on
    /// another.
    case otherConnection
    /// This device gets too much: the lane waits.
    case laterForThisLane
    /// The provider token changes too often: it is kept, and everything waits.
    case laterWithThisToken
    /// APNs cannot take anything for the time being.
    case laterForAll

    init(_ answer: Answer) {
        self =
            switch (answer.status, answer.reason) {
            case (200..<300, _): .delivered
            case (410, _): .unregistered(since: answer.timestamp)
            case (400, AnswerReason.badToken), (400, "DeviceTokenNotForTopic"): .badToken
            case (400, "IdleTimeout"): .otherConnection
            case (403, "ExpiredProviderToken"): .staleProviderToken
            case (403, "UnrelatedKeyIdInToken"): .otherConnection
            case (403, "BadEnvironmentKeyIdInToken"), (403, AnswerReason.badEnvironmentKey): .keyOfOtherEnvironment
            case (403, _): .badKey
            case (429, "TooManyProviderTokenUpdates"): .laterWithThisToken
            case (429, _): .laterForThisLane
            case (500..., _): .laterForAll
            default: .refused
            }
    }
}

/// The reasons that decide where a notification is sent next.
package enum AnswerReason {
    /// The token is not one, or is of the other environment.
    package static let badToken = "BadDeviceToken"
    /// The key is scoped to the other environment. Apple's page spells it with `KeyId`.
    package static let badEnvironmentKey = "BadEnvironmentKeyInToken"
}

/// The reasons that Apple documents ("Handling notification responses from APNs"). Others are passed on as they come,
/// but are counted together: a metric must not have as many names as a server cares to make up.
enum KnownReasons {
    private static let all: Set<String> = [
        "BadCollapseId", "BadDeviceToken", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic",
        "DeviceTokenNotForTopic", "DuplicateHeaders", "IdleTimeout", "InvalidPushType", "MissingDeviceToken",
        "MissingTopic", "PayloadEmpty", "TopicDisallowed", "BadCertificate", "BadCertificateEnvironment",
        "ExpiredProviderToken", "Forbidden", "InvalidProviderToken", "MissingProviderToken", "UnrelatedKeyIdInToken",
        "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken", "BadPath", "MethodNotAllowed", "ExpiredToken",
        "Unregistered", "PayloadTooLarge", "TooManyProviderTokenUpdates", "TooManyRequests", "InternalServerError",
        "ServiceUnavailable", "Shutdown", "BadChannelId", "ChannelNotRegistered", "MissingChannelId",
        "FeatureNotEnabled",
        "TopicMismatch",
    ]

    /// The name under which an answer is counted.
    static func name(of answer: Answer) -> String {
        if all.contains(answer.reason) { return answer.reason }
        return answer.reason.isEmpty ? "status \(answer.status)" : "other"
    }
}

/// The header `date` (RFC 9110, section 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
enum HTTPDate {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Milliseconds since 1970; nil for any other format: the obsolete ones are not sent over HTTP/2.
    static func milliseconds(_ text: String) -> Int64? {
        let parts = text.split(separator: " ")
        guard parts.count == 6, parts[5] == "GMT", let day = Int(parts[1]), let year = Int(parts[3]),
            let month = months.firstIndex(of: String(parts[2])), (1...31).contains(day), (1970...9999).contains(year)
        else { return nil }
        let time = parts[4].split(separator: ":").compactMap { Int($0) }
        guard time.count == 3, (0..<24).contains(time[0]), (0..<60).contains(time[1]), (0...60).contains(time[2]) else {
            return nil
        }
        let date = CivilDate(year: year, month: month + 1, day: day)
        return 1000 * Int64(date.daysSince1970 * 86_400 + time[0] * 3600 + time[1] * 60 + time[2])
    }
}
