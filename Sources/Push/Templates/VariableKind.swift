import Wire

/// What a variable is of which the name is known, so that a template never puts an empty text where an app decodes a
/// number: ActivityKit drops an update that does not decode, and says nothing.
package enum VariableKind: Sendable {
    case text, number, flag, list

    /// The names that Roost itself fills in. Others, such as the columns of an operator's statement, count as text.
    package static let known: [String: VariableKind] = [
        "activity_id": .text, "conversation_id": .text, "conversation_name": .text, "message_id": .text,
        "preview": .text, "body": .text, "sender_id": .text, "sender_name": .text,
        "unread": .number, "badge": .number, "version": .number, "updated_at": .number, "started_at": .number,
        "last_message_at": .number, "typing_count": .number, "online_count": .number,
        "connected": .flag, "muted": .flag,
        "typing": .list, "online": .list,
    ]

    /// What stands for a variable without a value.
    var empty: JSON {
        switch self {
        case .text: JSON(trusted: Array("\"\"".utf8)[...])
        case .number: JSON(trusted: Array("0".utf8)[...])
        case .flag: JSON(trusted: Array("false".utf8)[...])
        case .list: JSON(trusted: Array("[]".utf8)[...])
        }
    }
}
