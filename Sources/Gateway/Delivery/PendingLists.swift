package import Hub

/// The messages that each connection has yet to take: a list of message places per slot, all in one arena.
///
/// A list costs eight bytes per message and no allocation, so recording a fan-out to thousands of sockets does not
/// block the loop for long, and several messages for one connection go out in one write.
package struct PendingLists {
    private struct Node {
        var message: Int32
        var next: Int32
    }
    private struct List {
        var head: Int32 = -1
        var tail: Int32 = -1
        var bytes: Int = 0
        /// Bytes of the first message already written.
        var taken: Int = 0
    }
    private var nodes: [Node] = []
    private var free: Int32 = -1
    private var lists: [List] = []

    package init() {}

    package mutating func reserve(slot: Slot) {
        while lists.count <= Int(slot) { lists.append(List()) }
    }

    package func isEmpty(_ slot: Slot) -> Bool { lists[Int(slot)].head < 0 }

    /// True if nothing waits behind the message that is being sent.
    package func hasAtMostOne(_ slot: Slot) -> Bool {
        let head = lists[Int(slot)].head
        return head < 0 || nodes[Int(head)].next < 0
    }

    package func bytes(_ slot: Slot) -> Int { lists[Int(slot)].bytes }

    /// Bytes of the first message already written.
    package func taken(_ slot: Slot) -> Int { lists[Int(slot)].taken }

    private mutating func makeNode(_ message: Int32, next: Int32) -> Int32 {
        guard free >= 0 else {
            nodes.append(Node(message: message, next: next))
            return Int32(nodes.count - 1)
        }
        let node = free
        free = nodes[Int(node)].next
        nodes[Int(node)] = Node(message: message, next: next)
        return node
    }

    /// Inserts a message before all others, none of which may be partly written.
    package mutating func prepend(_ message: Int32, length: Int, to slot: Slot) {
        precondition(lists[Int(slot)].taken == 0, "a message would come in the middle of another")
        let node = makeNode(message, next: lists[Int(slot)].head)
        lists[Int(slot)].head = node
        if lists[Int(slot)].tail < 0 { lists[Int(slot)].tail = node }
        lists[Int(slot)].bytes += length
    }

    /// Returns the slot's pending bytes, including the new ones.
    package mutating func append(_ message: Int32, length: Int, to slot: Slot) -> Int {
        let node = makeNode(message, next: -1)
        let tail = lists[Int(slot)].tail
        if tail >= 0 { nodes[Int(tail)].next = node } else { lists[Int(slot)].head = node }
        lists[Int(slot)].tail = node
        lists[Int(slot)].bytes += length
        return lists[Int(slot)].bytes
    }

    /// Accounts for growth of the slot's last message. Returns the slot's pending bytes.
    package mutating func grow(_ slot: Slot, by length: Int) -> Int {
        lists[Int(slot)].bytes += length
        return lists[Int(slot)].bytes
    }

    /// The message, if exactly one is pending and none of it is written.
    package func only(_ slot: Slot) -> Int32? {
        let list = lists[Int(slot)]
        return list.head >= 0 && list.head == list.tail && list.taken == 0 ? nodes[Int(list.head)].message : nil
    }

    /// Copies the first messages of a slot to `batch`, at most `limit` of them.
    package func peek(_ slot: Slot, limit: Int, into batch: inout [Int32]) {
        batch.removeAll(keepingCapacity: true)
        var node = lists[Int(slot)].head
        while node >= 0, batch.count < limit {
            batch.append(nodes[Int(node)].message)
            node = nodes[Int(node)].next
        }
    }

    /// Counts further written bytes of the slot's first message, which is not complete yet.
    package mutating func advance(_ slot: Slot, by count: Int) {
        lists[Int(slot)].taken += count
        lists[Int(slot)].bytes -= count
    }

    /// Removes the slot's first message, which has `length` bytes in total, and returns its place.
    package mutating func removeFirst(_ slot: Slot, length: Int) -> Int32 {
        let node = lists[Int(slot)].head
        let removed = nodes[Int(node)]
        lists[Int(slot)].head = removed.next
        if removed.next < 0 { lists[Int(slot)].tail = -1 }
        lists[Int(slot)].bytes -= length - lists[Int(slot)].taken
        lists[Int(slot)].taken = 0
        nodes[Int(node)].next = free
        free = node
        return removed.message
    }

    package func first(_ slot: Slot) -> Int32? {
        let head = lists[Int(slot)].head
        return head < 0 ? nil : nodes[Int(head)].message
    }

    package func last(_ slot: Slot) -> Int32? {
        let tail = lists[Int(slot)].tail
        return tail < 0 ? nil : nodes[Int(tail)].message
    }
}
