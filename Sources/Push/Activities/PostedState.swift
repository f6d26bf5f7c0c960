package import Wire

/// A state that a backend posted: the backend's to the byte, except for the members left to the hub.
package struct PostedState: Sendable {
    private enum Piece: Sendable {
        case bytes(ArraySlice<UInt8>)
        case template(JSONTemplate)
    }

    /// The state as posted.
    package let state: JSON
    /// The names of the members that the hub fills.
    package let hub: [String]
    /// The variables that the hub fills in.
    package let variables: Set<String>
    private let pieces: [Piece]

    /// The maximum number of members that may be the hub's.
    package static let mostMembers = 32

    /// Makes a state that is entirely the backend's.
    package init(_ state: JSON) {
        self.state = state
        hub = []
        variables = []
        pieces = [.bytes(state.bytes)]
    }

    /// Makes a state with members that the hub fills. If the value of such a member contains a `{variable}`, it is a template;
    /// otherwise the hub's variable of the member's name replaces it. A member that the state lacks is added.
    package init(_ state: JSON, hub: [String]) throws(PostedStateError) {
        var members: [JSON.Member] = []
        state.forEachMember { members.append($0) }
        var pieces: [Piece] = []
        var templates: [JSONTemplate] = []
        var (at, end) = (state.bytes.startIndex, state.bytes.endIndex - 1)
        for member in members {
            guard let name = hub.first(where: { member.isNamed($0) }) else { continue }
            let template = try Self.template(for: name, member.value)
            templates.append(template)
            pieces += [.bytes(state.bytes[at..<member.value.bytes.startIndex]), .template(template)]
            at = member.value.bytes.endIndex
        }
        var isEmpty = members.isEmpty
        var names = Set(members.map { Name($0.key) })
        for name in hub where names.insert(Name(name)).inserted {
            let template = try Self.template(for: name, nil)
            templates.append(template)
            let key = JSONString.encode(name) + [UInt8(ascii: ":")]
            pieces += [
                .bytes(state.bytes[at..<end]), .bytes((isEmpty ? key : [UInt8(ascii: ",")] + key)[...]),
                .template(template),
            ]
            (at, isEmpty) = (end, false)
        }
        end = state.bytes.endIndex
        pieces.append(.bytes(state.bytes[at..<end]))
        self.state = state
        self.hub = hub
        self.pieces = pieces
        variables = templates.reduce(into: []) { $0.formUnion($1.names) }
    }

    private static func template(for name: String, _ value: JSON?) throws(PostedStateError) -> JSONTemplate {
        do throws(TemplateError) {
            if let value {
                let template = try JSONTemplate(value.description, known: ContentTemplate.variables)
                if !template.names.isEmpty { return template }
            }
            if ContentTemplate.variables.contains(name) { return try JSONTemplate("\"{\(name)}\"") }
        } catch {
            throw .badTemplate(member: name, error)
        }
        throw .unknownVariable(name)
    }

    /// Whether the hub fills in anything.
    package var hasVariables: Bool { !variables.isEmpty }

    /// Returns the state with the values of the variables filled in.
    package func filled(with values: @autoclosure () -> TemplateVariables) -> JSON {
        guard hasVariables else { return state }
        let values = values()
        var out: [UInt8] = []
        for piece in pieces {
            switch piece {
            case .bytes(let bytes): out += bytes
            case .template(let template): out += template.json(values).bytes
            }
        }
        return JSON(trusted: out[...])
    }
}

extension PostedState {
    /// The stored form: `{"state":…,"hub":[…]}`.
    package var stored: [UInt8] {
        JSONWriter.object { object in
            object.writeMember("state", json: state.bytes)
            object.array("hub", hub) { $0.writeValue($1) }
        }
    }

    /// Nil unless stored by a hub of this version.
    package init?(stored: [UInt8]) {
        do {
            let json = try JSON(parsing: stored)
            guard let state = json["state"], state.kind == .object else { return nil }
            try self.init(state, hub: json["hub"]?.elements.compactMap(\.string) ?? [])
        } catch {
            return nil
        }
    }
}

/// The reason why the hub cannot fill a posted state.
package enum PostedStateError: Error, Equatable, CustomStringConvertible {
    case unknownVariable(String)
    case badTemplate(member: String, TemplateError)

    package var description: String {
        switch self {
        case .unknownVariable(let name):
            "hub names \"\(name)\", which is no variable: name one of "
                + "\(ContentTemplate.variables.sorted().joined(separator: ", ")), or give that member of contentState a "
                + "template, such as \"{unread}\"."
        case .badTemplate(let member, let error): "The member \"\(member)\" of contentState is no template (\(error))."
        }
    }
}
