import Wire

/// What the hub says of a broadcast.
public struct BroadcastMeta: Sendable, Equatable {
    /// Of a message that was sent by SQL.
    public let id: String?
    /// It was sent earlier, and came again because it was missed.
    public let isReplayed: Bool
    /// Where the history goes on behind this message; the client keeps it by itself.
    let history: String?

    init(_ json: JSON) {
        id = json["id"]?.string
        isReplayed = json["replayed"]?.bool ?? false
        history = json["history"]?.string
    }
}
