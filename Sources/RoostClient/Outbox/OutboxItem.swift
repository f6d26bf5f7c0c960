public import Foundation

/// One payload of an outbox, as the app sees it.
public struct OutboxItem<Payload: Codable & Sendable>: Sendable {
    public enum State: Sendable, Equatable {
        case waiting
        case sending
        /// Rejected, with the reason that `classify` gave. Stays until it is retried or discarded.
        case failed(String)
    }

    public let localID: UUID
    public let lane: String
    public let payload: Payload
    /// How often it was sent since the app started, the send that runs included.
    public let attempts: Int
    public let state: State
}

extension OutboxItem: Equatable where Payload: Equatable {}

extension OutboxItem: Identifiable {
    public var id: UUID { localID }
}
