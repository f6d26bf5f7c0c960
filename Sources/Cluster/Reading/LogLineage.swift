/// Which epochs lead to the present one, and how far each of them went.
struct LogLineage {
    /// The last place of each epoch, oldest first. The present epoch's is where it was when it was opened.
    private(set) var heads: [LogPlace]
    /// The present epoch's newest tag when it was opened.
    let tag: UInt64

    init(_ head: LogHead) {
        // An engine whose clock went back, or one that lies, may name epochs out of order: those lead nowhere.
        var heads = [head.place]
        for older in head.older.prefix(LogHead.mostOlder) where older.epoch < heads[heads.count - 1].epoch {
            heads.append(older)
        }
        self.heads = heads.reversed()
        tag = head.tag
    }

    var head: LogPlace { heads[heads.count - 1] }
    var epoch: UInt64 { head.epoch }
    var oldest: LogPlace { heads[0] }

    func has(epoch: UInt64) -> Bool { heads.contains { $0.epoch == epoch } }

    /// Whether this place is one of this log's. The present epoch grows on, so any place of it may be.
    func has(_ place: LogPlace) -> Bool {
        place.epoch == epoch || heads.contains { $0.epoch == place.epoch && place.offset <= $0.offset }
    }

    /// The place of the entry that follows, were nothing trimmed. The place before the present epoch's first entry is
    /// followed by that entry, though it may not be written yet.
    func successor(of place: LogPlace) -> LogPlace {
        guard let index = heads.firstIndex(where: { $0.epoch == place.epoch }) else {
            return LogPlace(epoch: epoch, offset: 0)
        }
        if index == heads.count - 1 || place.offset < heads[index].offset {
            return LogPlace(epoch: place.epoch, offset: place.offset + 1)
        }
        let next = heads[(index + 1)...].first { $0.offset >= 0 } ?? head
        return LogPlace(epoch: next.epoch, offset: 0)
    }
}
