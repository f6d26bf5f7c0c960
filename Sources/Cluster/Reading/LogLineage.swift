/// The epochs that lead to the current one, and how far each of them went.
struct LogLineage {
    /// The last place of each epoch, oldest first. For the current epoch, its head when it was opened.
    private(set) var heads: [LogPlace]
    /// The newest tag of the current epoch when it was opened.
    let tag: UInt64

    init(_ head: LogHead) {
        // If the clock of Redis went back, or Redis lies, epochs may be out of order; those are ignored.
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

    func contains(epoch: UInt64) -> Bool { heads.contains { $0.epoch == epoch } }

    /// Whether this place belongs to this log. The current epoch grows, so any place in it may.
    func contains(_ place: LogPlace) -> Bool {
        place.epoch == epoch || heads.contains { $0.epoch == place.epoch && place.offset <= $0.offset }
    }

    /// The place of the next entry if nothing was trimmed. The place before the current epoch's first entry is followed
    /// by that entry, even if it is not written yet.
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
