import Hub
import Postgres

extension ReplayedMessage {
    /// A row of `Replay.sql`.
    ///
    /// - Returns: nil for a row without an id or a payload, which is no message.
    init?(_ rows: QueryResult, _ row: Int) {
        guard let id = rows.text(row, 0) else { return nil }
        let body: Body
        if let digits = rows.bytes(row, 3), let bytes = Bytea.decode(digits) {
            body = .binary(bytes)
        } else if let json = rows.bytes(row, 2) {
            body = .json(Array(json))
        } else {
            return nil
        }
        self.init(id: id, event: rows.text(row, 1) ?? "", body: body)
    }
}

/// Postgres' hex format of bytea: `\x00ff`.
enum Bytea {
    static func decode(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard text.starts(with: "\\x".utf8), text.count % 2 == 0 else { return nil }
        var out: [UInt8] = []
        out.reserveCapacity(text.count / 2 - 1)
        for index in stride(from: 2, to: text.count, by: 2) {
            guard let high = digit(text[index]), let low = digit(text[index + 1]) else { return nil }
            out.append(high << 4 | low)
        }
        return out
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
