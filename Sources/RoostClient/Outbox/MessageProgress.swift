/// The progress of a message that the user sent, as shown by its check marks.
///
/// It never goes back: reports come from several sources, in any order.
///
/// ```swift
/// var progress = MessageProgress(item.state)                        // sending, or failed
/// progress.advance(to: .sent)                                     // the row came by a change, or the request succeeded
/// for receipt in receipts { progress.advance(hasRead: receipt.readAt != nil) }   // rows of the table that receipts.statement writes
/// ```
public enum MessageProgress: Int, Sendable, Comparable, Codable, CaseIterable {
    /// The server rejected it; the app may send it again.
    case failed
    /// It is in the outbox.
    case sending
    /// The server has it.
    case sent
    /// A device of a reader has certainly received it.
    case delivered
    /// A reader has read it.
    case read

    /// The progress known from the outbox.
    public init(_ state: OutboxItem<some Codable & Sendable>.State) {
        switch state {
        case .waiting, .sending: self = .sending
        case .failed: self = .failed
        }
    }

    public static func < (one: MessageProgress, other: MessageProgress) -> Bool { one.rawValue < other.rawValue }

    /// Advances to `next`, unless it is further already.
    /// - Returns: whether the check marks change.
    @discardableResult
    public mutating func advance(to next: MessageProgress) -> Bool {
        guard next > self else { return false }
        self = next
        return true
    }

    /// Advances by a reader's receipt.
    /// - Returns: whether the check marks change.
    @discardableResult
    public mutating func advance(hasRead: Bool) -> Bool { advance(to: hasRead ? .read : .delivered) }

    /// The progress of a message to a group: the least of all its readers. Without receipts it is `sent`.
    public static func ofAll(_ readers: some Sequence<MessageProgress>) -> MessageProgress { readers.min() ?? .sent }
}
