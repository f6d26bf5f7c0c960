import Hub
import Synchronization
import Wire

/// How many sockets there are in all, from one address and of one user: one table for all loops.
///
/// A seat is taken at the door, before the upgrade is answered, so that no two loops give away the last one; whoever
/// took it gives it back. What is not limited is not counted.
final class SocketSeats: Sendable {
    private struct Table {
        var addresses: [PeerAddress: Int32] = [:]
        var users: [String: Int32] = [:]
    }
    private let limits: HubLimits
    private let total = Atomic<Int>(0)
    private let table = Mutex(Table())

    init(limits: HubLimits) {
        self.limits = limits
    }

    /// Zero: no limit.
    var capacity: Int { limits.connections }
    var countsAddresses: Bool { limits.connectionsPerAddress > 0 }
    var countsUsers: Bool { limits.connectionsPerUser > 0 }

    /// Takes a seat, or says what is full.
    func enter(_ address: PeerAddress?, _ user: String?) -> Refusal? {
        if limits.connections > 0 {
            guard total.wrappingAdd(1, ordering: .relaxed).newValue <= limits.connections else {
                total.wrappingSubtract(1, ordering: .relaxed)
                return .over(.connections, limits.connections)
            }
        }
        guard let refusal = enterTable(countsAddresses ? address : nil, countsUsers ? user : nil) else { return nil }
        if limits.connections > 0 { total.wrappingSubtract(1, ordering: .relaxed) }
        return refusal
    }

    private func enterTable(_ address: PeerAddress?, _ user: String?) -> Refusal? {
        guard address != nil || user != nil else { return nil }
        return table.withLock { table in
            if let address, table.addresses[address, default: 0] >= Int32(clamping: limits.connectionsPerAddress) {
                return .over(.connectionsPerAddress, limits.connectionsPerAddress)
            }
            if let user, table.users[user, default: 0] >= Int32(clamping: limits.connectionsPerUser) {
                return .over(.connectionsPerUser, limits.connectionsPerUser)
            }
            if let address { table.addresses[address, default: 0] += 1 }
            if let user { table.users[user, default: 0] += 1 }
            return nil
        }
    }

    /// Gives a seat back, all but the user's part of it: that is the hub's, which knows whom a socket was counted for.
    func leave(_ address: PeerAddress?) {
        if limits.connections > 0 { total.wrappingSubtract(1, ordering: .relaxed) }
        guard countsAddresses, let address else { return }
        table.withLock { Self.subtract(address, from: &$0.addresses) }
    }

    private static func subtract<Key>(_ key: Key, from counts: inout [Key: Int32]) {
        guard let count = counts[key] else { return }
        counts[key] = count > 1 ? count - 1 : nil
    }
}

extension SocketSeats: UserLedger {
    func enter(_ user: String) -> Bool {
        table.withLock { table in
            guard table.users[user, default: 0] < Int32(clamping: limits.connectionsPerUser) else { return false }
            table.users[user, default: 0] += 1
            return true
        }
    }

    func leave(_ user: String) {
        table.withLock { Self.subtract(user, from: &$0.users) }
    }
}
