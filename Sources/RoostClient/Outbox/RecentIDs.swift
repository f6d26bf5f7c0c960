import Foundation

/// The ids that were put in last, up to a number: a set that forgets.
struct RecentIDs {
    private var order: [UUID] = []
    private var members: Set<UUID> = []
    private var oldest = 0
    private let capacity: Int

    init(capacity: Int) { self.capacity = capacity }

    func contains(_ id: UUID) -> Bool { members.contains(id) }

    mutating func insert(_ id: UUID) {
        guard members.insert(id).inserted else { return }
        guard order.count == capacity else { return order.append(id) }
        members.remove(order[oldest])
        order[oldest] = id
        oldest = (oldest + 1) % capacity
    }
}
