/// How far one loop has passed a channel's history on to its members, and when.
struct HistoryReader {
    private struct Mark {
        /// Milliseconds, monotonic: the loop's clock as it was when the loop passed on `position`.
        var at: Int64
        var position: Int
    }

    /// All up to it was passed on to the members that the loop has.
    private(set) var position: Int
    private var marks: [Mark] = []

    /// One mark stands for this many milliseconds.
    private static let grain: Int64 = 1_000
    /// As many as cover the time that a dead socket may go unnoticed: nothing older is asked for.
    private static let most = 150

    init(position: Int) { self.position = position }

    mutating func advance(to position: Int, at now: HubTime) {
        guard position > self.position else { return }
        self.position = position
        // A mark that is made later than needed proves less than it could, never more.
        if let last = marks.last, now.monotonic - last.at < Self.grain {
            marks[marks.count - 1] = Mark(at: now.monotonic, position: position)
        } else {
            marks.append(Mark(at: now.monotonic, position: position))
            if marks.count > Self.most { marks.removeFirst(marks.count - Self.most) }
        }
    }

    /// What was certainly passed on before the loop's clock showed `time`; zero where nothing is known of then. What was
    /// passed on while it showed that very time may have come before or after.
    func position(before time: Int64) -> Int {
        marks.last { $0.at < time }?.position ?? 0
    }
}
