package import Hub
import Synchronization
package import Wire

/// Limits the number of sockets in total, per address and per user, in one table for all loops. A user's sockets are
/// counted over all hubs of a cluster (`UserTally`).
///
/// A connection counts for its address from its acceptance (`arrive`), whatever follows; through a proxy, only during a
/// request. It counts for its user and in total before its upgrade is answered, so that no two loops give away the last
/// place. The code that counts a connection also removes it. Addresses and users are counted only while they are
/// limited: earlier connections are in no count, and counted ones are removed even if the limit is gone.
package final class ConnectionLimits: Sendable {
    private struct Table {
        var addresses: [PeerAddress: Int32] = [:]
    }
    /// Zero for no limit.
    private let most: Atomic<Int>
    private let mostOfAddress: Atomic<Int>
    private let mostOfUser: Atomic<Int>
    private let total = Atomic<Int>(0)
    private let table = Mutex(Table())
    private let tally: UserTally

    package init(limits: HubLimits, tally: UserTally = UserTally()) {
        self.tally = tally
        most = Atomic(limits.connections)
        mostOfAddress = Atomic(limits.connectionsPerAddress)
        mostOfUser = Atomic(limits.connectionsPerUser)
    }

    /// Replaces the limits.
    package func adopt(_ limits: HubLimits) {
        most.store(limits.connections, ordering: .relaxed)
        mostOfAddress.store(limits.connectionsPerAddress, ordering: .relaxed)
        mostOfUser.store(limits.connectionsPerUser, ordering: .relaxed)
    }

    /// Zero for no limit.
    package var capacity: Int { most.load(ordering: .relaxed) }
    package var countsAddresses: Bool { mostOfAddress.load(ordering: .relaxed) > 0 }

    package enum Place {
        case counted
        /// Counted, but over the limit; the client should be told.
        case over
        /// Not counted: so many connections are over the limit that no more are told.
        case refused
        /// Addresses are not limited.
        case free
    }

    /// Counts a connection for its address.
    package func arrive(_ address: PeerAddress) -> Place {
        let most = mostOfAddress.load(ordering: .relaxed)
        guard most > 0 else { return .free }
        return table.withLock { table in
            let count = Int(table.addresses[address] ?? 0)
            guard count < 2 * most + Self.told else { return .refused }
            table.addresses[address] = Int32(clamping: count + 1)
            return count < most ? .counted : .over
        }
    }

    /// Connections over an address's limit that get an explanation, in addition to as many as the limit.
    private static let told = 8

    /// Whether a connection that was over its address's limit fits now, because others left.
    package func fits(_ address: PeerAddress) -> Bool {
        let most = mostOfAddress.load(ordering: .relaxed)
        return most == 0 || table.withLock { Int($0.addresses[address] ?? 0) <= most }
    }

    package func depart(_ address: PeerAddress) { table.withLock { Self.subtract(address, from: &$0.addresses) } }

    package var perAddress: Int { mostOfAddress.load(ordering: .relaxed) }

    /// Counts a connection, or returns the limit that is reached.
    ///
    /// - Parameters: nil for what should not be counted.
    package func enter(_ address: PeerAddress?, _ user: Name?) -> Refusal? {
        let most = most.load(ordering: .relaxed)
        let count = total.wrappingAdd(1, ordering: .relaxed).newValue
        let refusal = most > 0 && count > most ? .over(.connections, most) : enterTable(address, user)
        if refusal != nil { total.wrappingSubtract(1, ordering: .relaxed) }
        return refusal
    }

    private func enterTable(_ address: PeerAddress?, _ user: Name?) -> Refusal? {
        guard address != nil || user != nil else { return nil }
        return table.withLock { table in
            if let address, Self.isFull(table.addresses[address], mostOfAddress) {
                return .over(.connectionsPerAddress, mostOfAddress.load(ordering: .relaxed))
            }
            if let user, !admitSocket(user) {
                return .over(.connectionsPerUser, mostOfUser.load(ordering: .relaxed))
            }
            if let address { table.addresses[address, default: 0] += 1 }
            return nil
        }
    }

    private static func isFull(_ count: Int32?, _ most: borrowing Atomic<Int>) -> Bool {
        let most = most.load(ordering: .relaxed)
        return most > 0 && (count ?? 0) >= Int32(clamping: most)
    }

    /// Removes a connection from the counts, except its user's: that is the hub's task, which knows the user that a
    /// socket counts for.
    ///
    /// - Parameter address: the address that it counted for, if any.
    package func leave(_ address: PeerAddress?) {
        total.wrappingSubtract(1, ordering: .relaxed)
        if let address { depart(address) }
    }

    private static func subtract<Key>(_ key: Key, from counts: inout [Key: Int32]) {
        guard let count = counts[key] else { return }
        counts[key] = count > 1 ? count - 1 : nil
    }
}

extension ConnectionLimits: UserConnectionLimiter {
    package var countsUsers: Bool { mostOfUser.load(ordering: .relaxed) > 0 }

    package func admitSocket(_ user: Name) -> Bool {
        tally.admitSocket(user, most: mostOfUser.load(ordering: .relaxed))
    }

    package func releaseSocket(_ user: Name) { tally.releaseSocket(user) }
}

/// The addresses that one loop's sockets count for, by slot; empty while addresses are not limited.
struct CountedAddresses {
    private var addresses: [PeerAddress?] = []

    mutating func note(_ address: PeerAddress?, for slot: Slot) {
        if address == nil, addresses.count <= Int(slot) { return }
        while addresses.count <= Int(slot) { addresses.append(nil) }
        addresses[Int(slot)] = address
    }

    subscript(_ slot: Slot) -> PeerAddress? { Int(slot) < addresses.count ? addresses[Int(slot)] : nil }
}
