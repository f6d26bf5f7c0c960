package import Wire

/// Subscribers that receive the same frames, as a dense array of slots for each protocol version.
///
/// Dense because fan-out walks it for every message: an array of slots costs 0.8 ns a subscriber, a Set with a
/// dictionary 24 (notes/swift-over-c-loops). The price is that a member must remember its position and that removal
/// moves the last member into the gap.
package struct Audience {
    package private(set) var v1: [Slot] = []
    package private(set) var v2: [Slot] = []
    /// Readers of events, by format; empty if there never was one, as in nearly all channels.
    private var readers: [(format: EventFormat, slots: [Slot])] = []

    init() {}

    /// Joins several disjoint audiences.
    init(joining audiences: [Audience]) {
        v1.reserveCapacity(audiences.reduce(0) { $0 + $1.v1.count })
        v2.reserveCapacity(audiences.reduce(0) { $0 + $1.v2.count })
        for audience in audiences {
            v1 += audience.v1
            v2 += audience.v2
            for (format, slots) in audience.readers { readers[format] += slots }
        }
    }

    /// Returns the audience without some slots.
    func without(_ slots: Set<Slot>) -> Audience {
        var rest = self
        rest.v1.removeAll(where: slots.contains)
        rest.v2.removeAll(where: slots.contains)
        for index in readers.indices { rest.readers[index].slots.removeAll(where: slots.contains) }
        return rest
    }

    package var isEmpty: Bool { v1.isEmpty && v2.isEmpty && readers.allSatisfy(\.slots.isEmpty) }
    package var count: Int { readers.reduce(v1.count + v2.count) { $0 + $1.slots.count } }

    /// All slots, of whatever version.
    var slots: [Slot] { readers.reduce(v1 + v2) { $0 + $1.slots } }

    /// Calls the body with each version in use and its slots.
    func forEachVersion(_ body: (ProtocolVersion, [Slot]) -> Void) {
        if !v1.isEmpty { body(.v1, v1) }
        if !v2.isEmpty { body(.v2, v2) }
        for (format, slots) in readers where !slots.isEmpty { body(.events(format), slots) }
    }

    /// Calls the body with each reader of events.
    func forEachReader(_ body: (Slot) -> Void) {
        for (_, slots) in readers { slots.forEach(body) }
    }

    /// Adds a slot and returns its position.
    @discardableResult package mutating func addSlot(_ slot: Slot, _ version: ProtocolVersion) -> Int32 {
        switch version {
        case .v1:
            v1.append(slot)
            return Int32(v1.count - 1)
        case .v2:
            v2.append(slot)
            return Int32(v2.count - 1)
        case .events(let format):
            readers[format].append(slot)
            return Int32(readers[format].count - 1)
        }
    }

    /// Removes the slot at `position`. Returns the slot that moved there, whose owner must be told.
    mutating func remove(at position: Int32, _ version: ProtocolVersion) -> Slot? {
        switch version {
        case .v1: Self.remove(at: Int(position), from: &v1)
        case .v2: Self.remove(at: Int(position), from: &v2)
        case .events(let format): Self.remove(at: Int(position), from: &readers[format])
        }
    }

    private static func remove(at position: Int, from slots: inout [Slot]) -> Slot? {
        let last = slots.removeLast()
        guard position < slots.count else { return nil }
        slots[position] = last
        return last
    }
}

extension [(format: EventFormat, slots: [Slot])] {
    /// The slots of one format. There are at most four formats.
    fileprivate subscript(format: EventFormat) -> [Slot] {
        get { first { $0.format == format }?.slots ?? [] }
        _modify {
            let index = firstIndex { $0.format == format } ?? count
            if index == count { append((format, [])) }
            yield &self[index].slots
        }
    }
}
