import Hub
import Matching

/// RecoveryWindow.sql for some starts at once.
enum RecoveryStatement {
    private static let pieces = TemplateText.cut(TemplateText.code(of: SQL.recoveryWindow))
    private static let slice = TemplateText.cut(TemplateText.code(of: SQL.recoverySlice))

    enum Reading {
        /// Looks at so many rows at most, and brings about so many bytes of them, in no order.
        case limit(Int, bytes: Int)
        /// All that is wanted, by id.
        case ordered
    }

    /// - Parameters:
    ///   - upper: what is recovered up to; every start precedes it.
    ///   - prefilter: which rows can concern those who start; nil if all can.
    static func text(
        starts: [FeedCursor], upTo upper: Snapshot, of prefilter: RowPrefilter?, commitTimestamps: Bool,
        _ reading: Reading
    ) -> String {
        let lowest = starts.map(\.seen.xmax).min() ?? upper.xmax
        var running: Set<UInt64> = []
        // Many start at one place, so that this is done once for it.
        var before: Snapshot?
        for start in starts where start.seen != before {
            running.formUnion(start.seen.running.lazy.filter { $0 < lowest })
            before = start.seen
        }
        var parts = [
            "xmax": String(lowest), "bound": String(upper.xmax), "upper": upper.text,
            "xip": "{" + running.sorted().map(String.init).joined(separator: ",") + "}",
            "committed": commitTimestamps ? "pg_xact_commit_timestamp(xid::xid)::text" : "null::text",
            "wanted": "op <> 'M'" + (prefilter.map { " and (\($0.sql))" } ?? ""),
        ]
        switch reading {
        case .ordered:
            parts["only"] = "where wanted"
            parts["rest"] = "order by id"
            return TemplateText.fill(pieces, parts)
        case .limit(let rows, let bytes):
            parts["rest"] = "limit \(rows)"
            return TemplateText.fill(slice, ["missed": TemplateText.fill(pieces, parts), "most": String(bytes)])
        }
    }
}
