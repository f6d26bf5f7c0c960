/// How far a message of one's own is: what its ticks show.
///
/// It never goes back: reports come from several places, and in any order.
///
/// ```swift
/// var progress = MessageProgress(item.state)                        // sending, or failed
/// progress.advance(to: .sent)                                     // the row came by a change, or the request succeeded
/// for receipt in receipts { progress.advance(hasRead: receipt.readAt != nil) }   // rows of the table that receipts.statement writes
/// ```
public enum MessageProgress: Int, Sendable, Comparable, Codable, CaseIterable {
    /// The server would not have it; the app may send it again.
    case failed
    /// It is in the outbox.
    case sending
    /// The server has it.
    case sent
    /// A device of a reader has certainly received it.
    case delivered
    /// A reader has read it.
    case read

    /// What the outbox knows of it.
    public init(_ state: OutboxItem<some Codable & Sendable>.State) {
        switch state {
        case .waiting, .sending: self = .sending
        case .failed: self = .failed
        }
    }

    public static func < (one: MessageProgress, other: MessageProgress) -> Bool { one.rawValue < other.rawValue }

    /// Goes on to `next`, unless it is further already.
    /// - Returns: whether the ticks change.
    @discardableResult
    public mutating func advance(to next: MessageProgress) -> Bool {
        guard next > self else { return false }
        self = next
        return true
    }

    /// A reader's receipt came.
    /// - Returns: whether the ticks change.
    @discardableResult
    public mutating func advance(hasRead: Bool) -> Bool { advance(to: hasRead ? .read : .delivered) }

    /// Of a message to a group: as far as all of its readers are. One without receipts is `sent`.
    public static func ofAll(_ readers: some Sequence<MessageProgress>) -> MessageProgress { readers.min() ?? .sent }
}
