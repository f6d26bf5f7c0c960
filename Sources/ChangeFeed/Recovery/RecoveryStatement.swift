/// RecoveryWindow.sql for some starts at once.
enum RecoveryStatement {
    private static let pieces = TemplateText.cut(TemplateText.code(of: SQL.recoveryWindow))
    private static let slice = TemplateText.cut(TemplateText.code(of: SQL.recoverySlice))

    enum Reading {
        /// At most so many rows and about so many bytes, in no order.
        case limit(Int, bytes: Int)
        /// All of them, by id.
        case ordered
    }

    /// - Parameter upper: what is recovered up to; every start precedes it.
    static func text(
        starts: [FeedCursor], upTo upper: Snapshot, commitTimestamps: Bool, _ reading: Reading
    ) -> String {
        let lowest = starts.map(\.seen.xmax).min() ?? upper.xmax
        var running: Set<UInt64> = []
        // Many start at one place, so that this is done once for it.
        var before: Snapshot?
        for start in starts where start.seen != before {
            running.formUnion(start.seen.running.lazy.filter { $0 < lowest })
            before = start.seen
        }
        let rest =
            switch reading {
            case .limit(let rows, _): "limit \(rows)"
            case .ordered: "order by id"
            }
        let missed = TemplateText.fill(
            pieces,
            [
                "xmax": String(lowest), "bound": String(upper.xmax), "upper": upper.text,
                "xip": "{" + running.sorted().map(String.init).joined(separator: ",") + "}",
                "committed": commitTimestamps ? "pg_xact_commit_timestamp(xid::xid)::text" : "null::text",
                "rest": rest,
            ])
        guard case .limit(_, let bytes) = reading else { return missed }
        return TemplateText.fill(slice, ["missed": missed, "most": String(bytes)])
    }
}
