/// The operations that a subscription wants to hear of.
package struct EventSet: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package static let insert = EventSet(rawValue: 1)
    package static let update = EventSet(rawValue: 2)
    package static let delete = EventSet(rawValue: 4)
    package static let all: EventSet = [.insert, .update, .delete]

    package init(_ operation: RowChange.Operation) {
        switch operation {
        case .insert: self = .insert
        case .update: self = .update
        case .delete: self = .delete
        }
    }

    /// What a client calls an event, in any case; every other word means all of them, as in the original server.
    package init(clientText: String) {
        self = RowChange.Operation(rawValue: clientText.uppercased()).map(EventSet.init) ?? .all
    }

    /// The event as the protocol writes it.
    package var name: String {
        switch self {
        case .insert: "INSERT"
        case .update: "UPDATE"
        case .delete: "DELETE"
        default: "*"
        }
    }
}
