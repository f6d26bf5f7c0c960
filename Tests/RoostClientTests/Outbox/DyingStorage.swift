import Foundation
import RoostClient

/// What survives.
final class Disk {
    var entries: [UUID: OutboxEntry] = [:]
}

/// A storage that fails, or whose process dies, before or after a write has taken effect.
final class DyingStorage: OutboxStorage {
    struct Failure: Error {}

    enum Plan {
        case work, dieBefore, dieAfter, failBefore, failAfter
    }

    private let disk: Disk
    /// For the next write.
    var plan = Plan.work
    private(set) var isDead = false
    private(set) var hasFailed = false

    init(_ disk: Disk) { self.disk = disk }

    func load() -> [OutboxEntry] { Array(disk.entries.values) }

    func save(_ entry: OutboxEntry) throws { try write { $0.entries[entry.localID] = entry } }

    func remove(_ localID: UUID) throws { try write { $0.entries[localID] = nil } }

    private func write(_ change: (Disk) -> Void) throws {
        let plan = isDead ? .dieBefore : self.plan
        self.plan = .work
        if plan == .work || plan == .dieAfter || plan == .failAfter { change(disk) }
        isDead = isDead || plan == .dieBefore || plan == .dieAfter
        hasFailed = hasFailed || plan == .failBefore || plan == .failAfter
        if plan != .work { throw Failure() }
    }
}
