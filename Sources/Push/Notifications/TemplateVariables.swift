package import Wire

/// The values for templates, as JSON by name. A value of `null` counts as missing.
package struct TemplateVariables: Sendable {
    private var values: [String: JSON] = [:]

    package init() {}

    /// Takes the members of an object, such as a row of the operator's statement; a value of another kind has none.
    package init(_ object: JSON) {
        object.forEachMember { values[$0.key] = $0.value }
    }

    package subscript(name: String) -> JSON? {
        get { values[name].flatMap { $0.isNull ? nil : $0 } }
        set { values[name] = newValue }
    }

    package mutating func set(_ name: String, _ text: String) { values[name] = .string(text) }

    package mutating func set(_ name: String, _ number: some BinaryInteger) {
        values[name] = JSON(trusted: Array(String(number).utf8)[...])
    }

    package mutating func set(_ name: String, _ flag: Bool) {
        values[name] = JSON(trusted: Array(String(flag).utf8)[...])
    }

    package mutating func set(_ name: String, _ texts: [String]) {
        var list = JSONWriter()
        list.array(texts) { $0.writeValue($1) }
        values[name] = JSON(trusted: list.bytes[...])
    }

    /// All values as a JSON object, in the order of their names.
    package var json: [UInt8] {
        JSONWriter.object { object in
            for (name, value) in values.sorted(by: { $0.key < $1.key }) { object.writeMember(name, json: value.bytes) }
        }
    }

    /// Cuts a text to fit a lock screen. Does nothing if the variable is missing or not a text.
    package mutating func cut(_ name: String, to preview: Preview) {
        guard let text = self[name]?.string else { return }
        set(name, preview.of(text))
    }

    /// Returns the value in its own type; if it is missing, the empty value of its kind (0, false, [], otherwise "").
    func value(_ name: String) -> JSON { self[name] ?? (VariableKind.known[name] ?? .text).empty }

    /// Returns the value as part of a text: "" if it is missing, the elements of a list with commas between them.
    func text(_ name: String) -> String { self[name].map(Self.text) ?? "" }

    private static func text(_ value: JSON) -> String {
        switch value.kind {
        case .string: value.string ?? ""
        case .array: value.elements.map(text).joined(separator: ", ")
        case .null: ""
        case .number, .bool, .object: value.description
        }
    }
}

extension TextTemplate {
    /// Returns the text with the variables' values filled in; missing ones are left out.
    package func text(_ variables: TemplateVariables) -> String {
        pieces.reduce(into: "") { text, piece in
            switch piece {
            case .text(let plain): text += plain
            case .variable(let name): text += variables.text(name)
            }
        }
    }
}

extension JSON {
    static func string(_ text: String) -> JSON { JSON(trusted: JSONString.encode(text)[...]) }
}

/// The kind of a variable that Roost knows, so that a template never inserts an empty text where an app decodes a number: ActivityKit
/// silently drops an update that does not decode.
package enum VariableKind: Sendable {
    case text, number, flag, list

    /// The variables that Roost itself fills in. Others, such as the columns of an operator's statement, count as text.
    package static let known: [String: VariableKind] = [
        "activity_id": .text, "conversation_id": .text, "conversation_name": .text, "message_id": .text,
        "preview": .text, "body": .text, "sender_id": .text, "sender_name": .text,
        "unread": .number, "badge": .number, "version": .number, "updated_at": .number, "started_at": .number,
        "last_message_at": .number, "typing_count": .number, "online_count": .number,
        "present_count": .number,
        "connected": .flag, "muted": .flag,
        "typing": .list, "online": .list, "present": .list,
    ]

    /// The value of a variable that is missing.
    var empty: JSON {
        switch self {
        case .text: JSON(trusted: Array("\"\"".utf8)[...])
        case .number: JSON(trusted: Array("0".utf8)[...])
        case .flag: JSON(trusted: Array("false".utf8)[...])
        case .list: JSON(trusted: Array("[]".utf8)[...])
        }
    }
}
