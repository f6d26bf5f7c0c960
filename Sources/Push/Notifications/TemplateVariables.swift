package import Wire

/// The values that templates put in: JSON by name. A value that is `null` counts as missing.
package struct TemplateVariables: Sendable {
    private var values: [String: JSON] = [:]

    package init() {}

    /// The members of an object, such as a row of the operator's statement; nothing for other kinds.
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
        var out: [UInt8] = [UInt8(ascii: "[")]
        for text in texts {
            if out.count > 1 { out.append(UInt8(ascii: ",")) }
            JSONString.encode(text, into: &out)
        }
        out.append(UInt8(ascii: "]"))
        values[name] = JSON(trusted: out[...])
    }

    /// All of them, as a JSON object, in the order of their names.
    package var json: [UInt8] {
        var out: [UInt8] = [UInt8(ascii: "{")]
        for (name, value) in values.sorted(by: { $0.key < $1.key }) {
            if out.count > 1 { out.append(UInt8(ascii: ",")) }
            JSONString.encode(name, into: &out)
            out.append(UInt8(ascii: ":"))
            out += value.bytes
        }
        return out + [UInt8(ascii: "}")]
    }

    /// Cuts a text to what a lock screen shows. Does nothing where the variable is missing or is no text.
    package mutating func cut(_ name: String, to preview: Preview) {
        guard let text = self[name]?.string else { return }
        set(name, preview.of(text))
    }

    /// The value in its own type; of a missing one the empty value of its kind (0, false, [], otherwise "").
    func value(_ name: String) -> JSON { self[name] ?? (VariableKind.known[name] ?? .text).empty }

    /// The value as a part of a text: "" where it is missing, the elements of a list with commas between them.
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

extension JSON {
    static func string(_ text: String) -> JSON { JSON(trusted: JSONString.encode(text)[...]) }
}
