/// Something that somebody in a conversation is about to do.
struct ChatDeed: Comparable {
    enum Kind: Int {
        case typingBegins, typingEnds, receipt, departure, comeback
    }
    let due: UInt64
    let kind: Kind
    /// A seat, or for comings and goings a slot.
    let subject: Int
    /// The row that it is about.
    var tick = 0

    static func < (one: ChatDeed, other: ChatDeed) -> Bool {
        (one.due, one.kind.rawValue, one.subject) < (other.due, other.kind.rawValue, other.subject)
    }
}
