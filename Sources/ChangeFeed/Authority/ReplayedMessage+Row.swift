import Hub
import Wire

extension ReplayedMessage {
    /// A row of `Replay.sql`.
    ///
    /// - Returns: nil for a row without an id or a payload, which is no message.
    init?(_ rows: QueryResult, _ row: Int) {
        guard let id = rows.text(row, 0) else { return nil }
        let body: Body
        if let digits = rows.bytes(row, 3), let bytes = Hexadecimal.bytea(digits) {
            body = .binary(bytes)
        } else if let json = rows.bytes(row, 2) {
            body = .json(Array(json))
        } else {
            return nil
        }
        self.init(id: id, event: rows.text(row, 1) ?? "", body: body)
    }
}
