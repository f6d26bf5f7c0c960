public import Foundation

/// A change whose row cannot be handed on as the type that was asked for.
public struct UnreadableRow: Sendable, Equatable {
    public let kind: ChangeKind
    public let info: ChangeInfo
    /// What came of the row, as the text of a JSON object: the primary key is in it if the hub knows it.
    public let json: Data
    /// One sentence.
    public let reason: String
}
