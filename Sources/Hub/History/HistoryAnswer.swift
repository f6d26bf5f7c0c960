import Wire

/// What a join that asked for history gets.
struct HistoryAnswer {
    /// The client has all up to it, as far as can be told: the position that the reply names.
    let from: Int
    /// What was kept after it, oldest first.
    let messages: [KeptMessage]
    /// Milliseconds since 1970: of what was sent from then on, nothing is missing in what is kept.
    let since: Int64
    /// It comes back, by an id or because it was lost before.
    let isReturn: Bool
    /// Why something is missing that it should have got.
    let gap: HistoryGap?
    /// The membership that it takes over, if that is certain.
    let former: MemberID?

    /// The value of `history` in the join's response.
    func json(_ history: UInt64) -> [UInt8] {
        var out = Array("{\"id\":\"\(HistoryID(history: history, position: from).text)\",\"since\":\(since)".utf8)
        if let gap {
            out += ",\"complete\":false,\"reason\":".utf8
            JSONString.encode(gap.rawValue, into: &out)
        } else if isReturn {
            out += ",\"complete\":true".utf8
        }
        out.append(UInt8(ascii: "}"))
        return out
    }
}

/// Why a client that comes back does not get all that it missed; the raw value is what the reply says.
enum HistoryGap: String {
    case tooOld = "Not all of the messages that were missed are kept any more: load what you show again."
    case otherHistory =
        "The id is of another process of the hub, or of before the channel was empty for long: load what you show again."
    case malformed = "The id is not one that this channel gave out: load what you show again."
    case tooMuch = "More was missed than is sent to one socket at once: load what you show again."
    case off = "This hub keeps no messages: load what you show again."
}
