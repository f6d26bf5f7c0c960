public import Foundation

/// One payload that waits to be sent, as a storage keeps it.
public struct OutboxEntry: Codable, Sendable, Equatable {
    /// What the server knows a repeat by; a column with a unique constraint there.
    public let localID: UUID
    /// Entries of one lane are sent in the order of their positions, one at a time.
    public let lane: String
    /// Grows with every entry. A storage may return entries in any order.
    public internal(set) var position: Int64
    /// JSON.
    public let payload: Data
    /// Why the server will not have it; nil while it waits.
    public internal(set) var failure: String?

    /// For storages that keep the fields apart.
    public init(localID: UUID, lane: String, position: Int64, payload: Data, failure: String?) {
        self.localID = localID
        self.lane = lane
        self.position = position
        self.payload = payload
        self.failure = failure
    }
}
