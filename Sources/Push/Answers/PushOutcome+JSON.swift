import Wire

extension PushOutcome {
    /// One word, for logs, metrics and scripts.
    package var name: String {
        switch self {
        case .delivered: "delivered"
        case .unregistered: "unregistered"
        case .refused: "refused"
        case .badToken: "badToken"
        case .superseded: "superseded"
        case .expired: "expired"
        case .overflow: "overflow"
        case .tooLarge: "tooLarge"
        case .unanswered: "unanswered"
        case .stopped: "stopped"
        }
    }

    /// The line that `roost push` prints.
    package func line(for id: PushID) -> String {
        var members = [("id", JSONString.encode(id.text)), ("outcome", JSONString.encode(name))]
        switch self {
        case .refused(let status, let reason):
            members += [("status", Array("\(status)".utf8)), ("reason", JSONString.encode(reason))]
        case .badToken(let reason):
            members += [("status", Array("400".utf8)), ("reason", JSONString.encode(reason))]
        case .unregistered(let since):
            members.append(("status", Array("410".utf8)))
            if let since { members.append(("since", Array("\(since)".utf8))) }
        case .tooLarge(let bytes, let limit):
            members += [("bytes", Array("\(bytes)".utf8)), ("limit", Array("\(limit)".utf8))]
        case .delivered, .superseded, .expired, .overflow, .unanswered, .stopped: break
        }
        let text = members.map { "\"\($0.0)\":" + String(decoding: $0.1, as: UTF8.self) }
        return "{" + text.joined(separator: ",") + "}"
    }
}
