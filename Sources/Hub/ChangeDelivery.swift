package import Matching

/// One change for one group of subscribers, ready for its loop.
package struct ChangeDelivery: Sendable {
    package let group: ChangeGroupID
    package let operation: RowChange.Operation
    /// Those of the group's bindings that match.
    package let ids: [Int]
    /// The encoded `data` of the event, shared by all groups that are shown the same columns.
    package let data: [UInt8]
    package let recipients: Recipients
    /// Where a client that has this change may go on; opaque, and JSON text without escapes. Empty where nobody can.
    package let cursor: String
    /// Microseconds since 1970; nil where it does not matter how late it is, as in a recovery.
    package let committedAtMicroseconds: Int64?

    package enum Recipients: Sendable {
        case everybody
        /// Those who brought one of these claims: policies let no others see the row.
        case bearers([Claims])
    }

    package init(
        group: ChangeGroupID, operation: RowChange.Operation, ids: [Int], data: [UInt8],
        recipients: Recipients = .everybody, cursor: String = "", committedAtMicroseconds: Int64? = nil
    ) {
        self.group = group
        self.operation = operation
        self.ids = ids
        self.data = data
        self.recipients = recipients
        self.cursor = cursor
        self.committedAtMicroseconds = committedAtMicroseconds
    }
}
