/// The last so many of something, oldest first.
package struct Ring<Element> {
    package let capacity: Int
    private var slots: [Element] = []
    /// Where the oldest one stands once the ring is full.
    private var start = 0

    /// - Parameter capacity: more than none. Room is taken as it fills.
    package init(capacity: Int) {
        precondition(capacity > 0, "a ring has room for something")
        self.capacity = capacity
    }

    package var count: Int { slots.count }

    package mutating func append(_ element: Element) {
        guard slots.count == capacity else { return slots.append(element) }
        slots[start] = element
        start = (start + 1) % capacity
    }

    package var elements: [Element] { Array(slots[start...]) + slots[..<start] }

    package var last: Element? {
        slots.isEmpty ? nil : slots[(start + slots.count - 1) % slots.count]
    }
}

extension Ring: Sendable where Element: Sendable {}
