import Hub
import Postgres
import Wire

extension PresenceRecord {
    /// A row of StoredPresence.sql.
    init?(_ rows: QueryResult, _ row: Int) {
        guard let ref = rows.text(row, 0), let topic = rows.text(row, 1), let key = rows.text(row, 3),
            let payload = rows.bytes(row, 6).map(Array.init),
            topic.utf8.starts(with: ChannelKey.prefix.utf8), Self.isObject(payload)
        else { return nil }
        self.init(
            channel: ChannelKey(topic: StoredText.decode(topic), isPrivate: rows.flag(row, 2)), ref: ref,
            key: StoredText.decode(key), hasMadeKey: rows.flag(row, 4), user: rows.text(row, 5).map(StoredText.decode),
            payload: payload, appState: rows.text(row, 7).flatMap { AppState(rawValue: $0) })
    }

    /// What clients are sent is spliced from it, so it has to be whole.
    private static func isObject(_ bytes: [UInt8]) -> Bool {
        do { return try JSON(parsing: bytes).kind == .object } catch { return false }
    }
}
