package import Hub

/// Counts unused tickets per holder, so that one with many leaves some to others.
package struct TicketShares {
    /// A ticket's holder: its user or, if the token names none, the token, which many clients may share.
    package struct Holder: Sendable {
        fileprivate let name: Name
        fileprivate let address: PeerAddress?

        package init(_ claims: Claims, at address: PeerAddress?) {
            name = claims.subject.map { .user(Array($0.utf8)) } ?? .token(claims)
            self.address = address
        }
    }

    fileprivate enum Name: Hashable, Sendable {
        case user([UInt8])
        case token(Claims)

        var most: Int { if case .user = self { TicketShares.mostOfUser } else { TicketShares.mostOfToken } }
    }

    package static let mostOfUser = 100
    /// Half of the total, because many people share an anonymous key.
    package static let mostOfToken = 5_000
    /// The address of a company or a provider may be shared by many people, too.
    package static let mostOfAddress = 500

    /// The limit that a holder has reached.
    package enum Bound: Sendable {
        case holder
        case address
    }

    private var names: [Name: Int] = [:]
    private var addresses: [PeerAddress: Int] = [:]

    package init() {}

    /// - Returns: the limit that is reached; nil if there is room.
    package mutating func enter(_ holder: Holder) -> Bound? {
        guard names[holder.name, default: 0] < holder.name.most else { return .holder }
        if let address = holder.address {
            guard addresses[address, default: 0] < Self.mostOfAddress else { return .address }
            addresses[address, default: 0] += 1
        }
        names[holder.name, default: 0] += 1
        return nil
    }

    package mutating func leave(_ holder: Holder) {
        Self.subtract(holder.name, from: &names)
        if let address = holder.address { Self.subtract(address, from: &addresses) }
    }

    private static func subtract<Key>(_ key: Key, from counts: inout [Key: Int]) {
        guard let count = counts[key] else { return }
        counts[key] = count > 1 ? count - 1 : nil
    }
}
