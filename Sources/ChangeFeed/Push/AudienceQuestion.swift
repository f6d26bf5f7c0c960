import Hub
import Matching

/// Changes as the audience statement's parameter has them.
struct AudienceQuestion {
    /// Asked about by one statement.
    static let mostChanges = 500
    /// Of records in one statement that has more than one.
    private static let mostBytes = 1_000_000

    struct Asked {
        /// The change's index among those that the caller asked about.
        let index: Int
        let change: RowChange
        let record: [UInt8]
    }

    /// What there is to ask about, in pieces that one statement takes. A row that is gone has no audience.
    static func pieces(of changes: [RowChange]) -> [ArraySlice<Asked>] {
        let asked = changes.enumerated().compactMap { index, change in
            change.record.map { Asked(index: index, change: change, record: $0) }
        }
        var pieces: [ArraySlice<Asked>] = []
        var start = 0
        var bytes = 0
        for (place, one) in asked.enumerated() {
            if place > start, place - start >= mostChanges || bytes + one.record.count > mostBytes {
                pieces.append(asked[start..<place])
                start = place
                bytes = 0
            }
            bytes += one.record.count
        }
        if start < asked.count { pieces.append(asked[start...]) }
        return pieces
    }

    /// `[{"row":0,"schema":"public","table":"messages","record":{…}}]`
    static func json(_ asked: ArraySlice<Asked>) -> String {
        var out = Array("[".utf8)
        for one in asked {
            if out.count > 1 { out.append(UInt8(ascii: ",")) }
            out += "{\"row\":\(one.index),\"schema\":\"".utf8
            out += RecordKeys.encoded(one.change.table.schema)
            out += "\",\"table\":\"".utf8
            out += RecordKeys.encoded(one.change.table.name)
            out += "\",\"record\":".utf8
            out += one.record
            out.append(UInt8(ascii: "}"))
        }
        return String(decoding: out, as: UTF8.self) + "]"
    }
}
