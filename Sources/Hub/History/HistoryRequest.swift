import Wire

/// `config.broadcast.history` of a join: the channel's broadcasts are to be kept for those who drop off and come back.
///
/// `true`, or `{"limit": messages, "seconds": seconds, "after": id}`, all of them optional. What is missing or odd takes
/// the most that the hub keeps, as everything in a join's config does: an odd config keeps nobody out.
struct HistoryRequest {
    /// How many messages the channel is to keep, and for how many seconds. The most that any member asked for counts.
    var limit: Int?
    var seconds: Int?
    /// The id of the last message that the client has. Nil where it names none.
    var after: String?

    /// Nil where no history is asked for.
    init?(_ json: JSON?) {
        guard let json else { return nil }
        if json.kind == .object {
            limit = json["limit"]?.int
            seconds = json["seconds"]?.int
            if let after = json["after"], !after.isNull { self.after = after.string ?? after.description }
        } else {
            guard json.bool ?? (json.string?.lowercased() == "true") else { return nil }
        }
    }
}
