import Hub
import Wire

/// A row of `realtime.messages`, as the trigger on it leaves it in the outbox (wire-protocol B).
enum MessageRow {
    /// - Returns: nil for what is no message, as it has no topic.
    static func broadcast(_ record: UnsafeBufferPointer<UInt8>) -> DatabaseBroadcast? {
        let row: JSON
        do { row = try JSON(parsing: Array(record)) } catch { return nil }
        guard let topic = row["topic"]?.string, !topic.isEmpty else { return nil }
        let id = row["id"]?.string ?? ""
        let metadata = Array("{\"id\":".utf8) + JSONString.encode(id) + [UInt8(ascii: "}")]
        let user: UserBroadcast
        if let bytes = row["binary_payload"]?.string.flatMap({ Hexadecimal.bytea(Array($0.utf8)) }) {
            user = UserBroadcast(
                event: row["event"]?.string ?? "", encoding: .raw, payload: bytes[...], metadata: metadata)
        } else {
            user = UserBroadcast(
                event: row["event"]?.string ?? "", encoding: .json,
                payload: row["payload"]?.bytes ?? Array("{}".utf8)[...], metadata: metadata)
        }
        // Text has no limit of 255 bytes for a topic or an event, and every client reads its meta.
        let broadcast = user.encoding == .raw ? Broadcast.user(user) : .text(user.textPayload() ?? [])
        let key = ChannelKey(topic: ChannelKey.prefix + topic, isPrivate: row["private"]?.bool ?? false)
        return DatabaseBroadcast(key: key, id: id, broadcast: broadcast)
    }
}
