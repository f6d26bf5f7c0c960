package import Wire

/// A JSON value whose strings have places for variables, such as `{"unread":"{unread}","line":"{sender_name}:
/// {preview}"}`.
///
/// A string that is exactly one variable becomes the variable's own value: a number, a flag, a list. In other strings the value is
/// inserted as text. Keys and everything else are left as they are, to the byte (white space aside).
package struct JSONTemplate: Sendable, Equatable {
    private enum Piece: Sendable, Equatable {
        case bytes([UInt8])
        case value(String)
        case text(TextTemplate)
    }

    private let pieces: [Piece]
    /// The variables that the template names.
    package let names: Set<String>
    package let isObject: Bool

    /// - Parameter known: the only names that may be used; nil allows any.
    package init(_ source: String, known: Set<String>? = nil) throws(TemplateError) {
        let value: JSON
        do {
            value = try JSON(parsing: Array(source.utf8))
        } catch {
            throw TemplateError(place: "byte \(error.offset + 1)", problem: "this is not JSON (RFC 8259) from here on")
        }
        var builder = Builder(known: known)
        try builder.add(value, at: [])
        builder.flush()
        pieces = builder.pieces
        names = builder.names
        isObject = value.kind == .object
    }

    package func json(_ variables: TemplateVariables) -> JSON {
        var out: [UInt8] = []
        for piece in pieces {
            switch piece {
            case .bytes(let bytes): out += bytes
            case .value(let name): out += variables.value(name).bytes
            case .text(let template): JSONString.encode(template.text(variables), into: &out)
            }
        }
        return JSON(trusted: out[...])
    }

    private struct Builder {
        let known: Set<String>?
        var pieces: [Piece] = []
        var names: Set<String> = []
        private var bytes: [UInt8] = []

        init(known: Set<String>?) { self.known = known }

        mutating func flush() {
            if !bytes.isEmpty { pieces.append(.bytes(bytes)) }
            bytes = []
        }

        mutating func add(_ value: JSON, at path: [String]) throws(TemplateError) {
            switch value.kind {
            case .object:
                var members: [(rawKey: ArraySlice<UInt8>, key: String, value: JSON)] = []
                value.forEachMember { members.append(($0.rawKey, $0.key, $0.value)) }
                bytes.append(UInt8(ascii: "{"))
                for (index, member) in members.enumerated() {
                    if index > 0 { bytes.append(UInt8(ascii: ",")) }
                    bytes.append(UInt8(ascii: "\""))
                    bytes += member.rawKey
                    bytes += "\":".utf8
                    try add(member.value, at: path + [member.key])
                }
                bytes.append(UInt8(ascii: "}"))
            case .array:
                bytes.append(UInt8(ascii: "["))
                for (index, element) in value.elements.enumerated() {
                    if index > 0 { bytes.append(UInt8(ascii: ",")) }
                    try add(element, at: path + [String(index)])
                }
                bytes.append(UInt8(ascii: "]"))
            case .string: try add(text: value, at: path)
            case .number, .bool, .null: bytes += value.bytes
            }
        }

        private mutating func add(text value: JSON, at path: [String]) throws(TemplateError) {
            let text = value.string ?? ""
            guard text.contains(where: { $0 == "{" || $0 == "}" }) else {
                bytes += value.bytes
                return
            }
            let template: TextTemplate
            do {
                template = try TextTemplate(text, known: known)
            } catch {
                throw path.isEmpty ? error : error.inside("the value of \"\(path.joined(separator: "."))\"")
            }
            names.formUnion(template.names)
            flush()
            if template.pieces.count == 1, case .variable(let name) = template.pieces[0] {
                pieces.append(.value(name))
            } else {
                pieces.append(.text(template))
            }
        }
    }
}
