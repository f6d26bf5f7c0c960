/// A join that asked for history, at the moment it is answered.
struct HistoryArrival {
    let session: HistorySession
    /// The first proof that will be about what it is sent.
    let firstProof: Int
    /// The id that it brought.
    let after: String?
    /// How far its loop has passed the history on: from there it hears what comes live.
    let seated: Int
    /// Bytes that it may be sent at once. One message always may where it has had nothing yet.
    let room: Int
    let isFresh: Bool
}

extension KeptChannel {
    /// Live members that may be dead ones of the client that joins, and lack something.
    func doubts(of trace: ClientTrace, _ member: HistoryKey) -> [ClientTrace] {
        sessions.doubts(of: trace, member) { $0.proven(readers[$0.member.loop]).position < head }
    }

    /// Works out what the member is owed, and notes it among those who may be lost.
    mutating func answer(_ arrival: HistoryArrival) -> HistoryAnswer {
        let session = arrival.session
        // Asked for in any case: it marks the session that the client leaves behind as taken.
        let found = sessions.takeOver(
            session.key, session.trace, hasAsked: arrival.after == nil, readers: readers)
        var (wanted, gap) = (arrival.seated, HistoryGap?.none)
        if let after = arrival.after {
            (wanted, gap) = position(after, seated: arrival.seated)
        } else if let found, found.position < arrival.seated {
            wanted = found.position
        }
        if gap == nil, wanted < first - 1 { gap = .tooOld }
        let missed = after(wanted).filter { $0.position <= arrival.seated }
        let sent = Self.newest(missed, of: arrival)
        if gap == nil, sent.count < missed.count { gap = .tooMuch }
        let from = sent.first.map { $0.position - 1 } ?? arrival.seated
        session.settles(at: from, seated: arrival.seated, firstProof: arrival.firstProof)
        return HistoryAnswer(
            from: from, messages: Array(sent), since: since,
            isReturn: arrival.after != nil || wanted < arrival.seated, gap: gap, former: found?.member)
    }

    /// Where an id lies. One that says nothing here gets all that is kept.
    private func position(_ id: String, seated: Int) -> (Int, HistoryGap?) {
        guard let id = HistoryID(id) else { return (0, .malformed) }
        guard id.history == history else { return (0, .otherHistory) }
        guard id.position <= seated else { return (0, .malformed) }
        return (id.position, nil)
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
