import Wire

/// What a join that asked for history gets.
struct HistoryAnswer {
    /// The client has all up to it, as far as can be told: what the reply names.
    let from: HistoryID
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
    var json: [UInt8] {
        JSONWriter.object { writer in
            writer.member("id", from.text)
            writer.member("since", since)
            if let gap {
                gap.write(to: &writer)
            } else if isReturn {
                writer.member("complete", true)
            }
        }
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

    /// Its members of the value of `history`.
    func write(to writer: inout JSONWriter) {
        writer.member("complete", false)
        writer.member("reason", rawValue)
    }
}

/// A join that asked for history, at the moment it is answered.
struct HistoryArrival {
    let session: HistorySession
    /// The first ping whose answer will be about what it is sent.
    let firstPing: Int
    /// The id that it brought.
    let after: String?
    /// How far its loop has passed the history on: from there it hears what comes live.
    let liveFrom: Int
    /// Bytes that it may be sent at once. One message always may where it has had nothing yet.
    let room: Int
    let isFresh: Bool
    /// It is noted among those who may be lost; else what they left behind is not for it.
    let hasSession: Bool
}

extension KeptChannel {
    /// Live members that may be dead ones of the client that joins, and lack something.
    func doubts(of trace: ClientTrace, _ member: HistoryKey) -> [ClientTrace] {
        sessions.doubts(of: trace, member) { $0.acknowledged(by: readers[$0.member.loop]).position < head }
    }

    /// Works out what the member is owed, and notes it among those who may be lost.
    mutating func answer(_ arrival: HistoryArrival) -> HistoryAnswer {
        let session = arrival.session
        // Asked for in any case: it marks the session that the client leaves behind as taken.
        let found =
            arrival.hasSession
            ? sessions.position(
                ofUserOf: session,
                noLaterThan: sessions.takeOver(
                    session.key, session.trace, hasAsked: arrival.after == nil, readers: readers)) : nil
        var (wanted, gap) = (arrival.liveFrom, HistoryGap?.none)
        if let after = arrival.after {
            (wanted, gap) = position(after, liveFrom: arrival.liveFrom)
        } else if let found, found.position < arrival.liveFrom {
            wanted = found.position
        }
        if gap == nil, wanted < floor { gap = .tooOld }
        let missed = after(wanted).filter { $0.position <= arrival.liveFrom }
        let sent = Self.newest(missed, of: arrival)
        if gap == nil, sent.count < missed.count { gap = .tooMuch }
        let start = sent.first.map { $0.position - 1 } ?? arrival.liveFrom
        session.settles(at: start, liveFrom: arrival.liveFrom, firstPing: arrival.firstPing)
        let from = sent.first.map { HistoryID(history: $0.id.history, position: $0.id.position - 1) }
        return HistoryAnswer(
            from: from ?? id(at: arrival.liveFrom), messages: Array(sent), since: since,
            isReturn: arrival.after != nil || wanted < arrival.liveFrom, gap: gap, former: found?.member)
    }

    /// Where an id lies. One that says nothing here gets all that is kept.
    private func position(_ id: String, liveFrom: Int) -> (Int, HistoryGap?) {
        guard let id = HistoryID(id) else { return (0, .malformed) }
        guard id.history == history else { return (0, .otherHistory) }
        let position = id.position + base
        guard position <= liveFrom else { return (0, .malformed) }
        return (position, nil)
    }

    private static func newest(_ missed: [KeptMessage], of arrival: HistoryArrival) -> ArraySlice<KeptMessage> {
        var room = arrival.room
        var start = missed.endIndex
        while start > missed.startIndex {
            let size = missed[start - 1].bytes
            guard size <= room || arrival.isFresh && start == missed.endIndex else { break }
            room -= size
            start -= 1
        }
        return missed[start...]
    }
}
