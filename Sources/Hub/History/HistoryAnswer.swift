import Wire

/// The history part of a join's answer.
struct HistoryAnswer {
    /// The position named in the reply: as far as can be told, the client has everything up to it.
    let from: HistoryID
    /// The messages kept after that position, oldest first.
    let messages: [KeptMessage]
    /// Milliseconds since 1970: of everything sent since then, no message is missing from what is kept.
    let since: Int64
    /// The client is coming back, as shown by an ID or by a session it lost before.
    let isReturn: Bool
    /// The reason why messages are missing that the client should have received.
    let gap: HistoryGap?
    /// The membership that this one takes over, if that is certain.
    let former: MemberID?

    /// The value of `history` in the join's response.
    var json: [UInt8] {
        JSONWriter.object { writer in
            writer.writeMember("id", from.text)
            writer.writeMember("since", since)
            if let gap {
                gap.writeMembers(to: &writer)
            } else if isReturn {
                writer.writeMember("complete", true)
            }
        }
    }
}

/// The reason why a returning client does not get everything it missed; the raw value is the text in the reply.
enum HistoryGap: String {
    case tooOld = "Not all of the messages that were missed are kept any more: load what you show again."
    case otherHistory =
        "The id is of another process of the hub, or of before the channel was empty for long: load what you show again."
    case malformed = "The id is not one that this channel gave out: load what you show again."
    case tooMuch = "More was missed than is sent to one socket at once: load what you show again."
    case off = "This hub keeps no messages: load what you show again."

    /// Writes the members that a gap adds to the value of `history`.
    func writeMembers(to writer: inout JSONWriter) {
        writer.writeMember("complete", false)
        writer.writeMember("reason", rawValue)
    }
}

/// A join that asked for history, at the moment it is answered.
struct HistoryArrival {
    let session: HistorySession
    /// The first ping whose answer will cover what the member is sent.
    let firstPing: Int
    /// The ID that the client brought.
    let after: String?
    /// The position to which the loop has passed the history on: live messages follow it.
    let liveFrom: Int
    /// The number of bytes the member may be sent at once. One message is always allowed if it has had nothing yet.
    let room: Int
    let isFresh: Bool
    /// The member has a session and may be lost; otherwise it cannot take over older sessions.
    let hasSession: Bool
}

extension KeptChannel {
    /// Returns live members that lack something and may be dead sockets of the joining client.
    func doubts(of trace: ClientTrace, _ member: HistoryKey) -> [ClientTrace] {
        sessions.doubts(of: trace, member) { $0.acknowledged(by: readers[$0.member.loop]).position < head }
    }

    /// Determines what the member is owed, and registers its session.
    mutating func answerArrival(_ arrival: HistoryArrival) -> HistoryAnswer {
        let session = arrival.session
        // Called in any case: it marks the session that the client left behind as taken.
        let found =
            arrival.hasSession
            ? sessions.position(
                ofUserOf: session,
                noLaterThan: sessions.takeOver(
                    session.key, session.trace, hasAsked: arrival.after == nil, readers: readers)) : nil
        var (wanted, gap) = (arrival.liveFrom, HistoryGap?.none)
        if let after = arrival.after {
            (wanted, gap) = resolveID(after, liveFrom: arrival.liveFrom)
        } else if let found, found.position < arrival.liveFrom {
            wanted = found.position
        }
        if gap == nil, wanted < floor { gap = .tooOld }
        let missed = messagesAfter(wanted).filter { $0.position <= arrival.liveFrom }
        let sent = Self.newestFitting(missed, of: arrival)
        if gap == nil, sent.count < missed.count { gap = .tooMuch }
        let start = sent.first.map { $0.position - 1 } ?? arrival.liveFrom
        session.markAnswered(at: start, liveFrom: arrival.liveFrom, firstPing: arrival.firstPing)
        let from = sent.first.map { HistoryID(history: $0.id.history, position: $0.id.position - 1) }
        return HistoryAnswer(
            from: from ?? id(at: arrival.liveFrom), messages: Array(sent), since: since,
            isReturn: arrival.after != nil || wanted < arrival.liveFrom, gap: gap, former: found?.member)
    }

    /// Returns the position of an ID. An ID that is meaningless here gets everything that is kept.
    private func resolveID(_ id: String, liveFrom: Int) -> (Int, HistoryGap?) {
        guard let id = HistoryID(id) else { return (0, .malformed) }
        guard id.history == history else { return (0, .otherHistory) }
        let position = id.position + base
        guard position <= liveFrom else { return (0, .malformed) }
        return (position, nil)
    }

    private static func newestFitting(_ missed: [KeptMessage], of arrival: HistoryArrival) -> ArraySlice<KeptMessage> {
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
