/// The entries of an index and the lists that contain them.
///
/// An entry is one binding of one group for one table. It is in several lists (one for each event and value), and each
/// membership is a link that knows its position, so that removing it takes one swap whatever the length of the list.
struct EntryTable: Sendable {
    /// A class, like the conditions: a scan that copied structs would change half a dozen reference counts per copy.
    final class Entry: Sendable {
        let group: Int
        /// The binding's id, as an array that all deliveries to this entry alone share.
        let ids: [Int]
        let selection: Selection?
        /// True if other bindings of the group may match the same change.
        let hasSiblings: Bool
        let filter: BoundFilter
        /// The rest of the filter when the entry was found by its value.
        let residual: BoundFilter
        /// Index of the column layout that the filter was bound to.
        let layout: Int

        init(
            group: Int, id: Int, selection: Selection?, hasSiblings: Bool, filter: BoundFilter, residual: BoundFilter,
            layout: Int
        ) {
            self.group = group
            ids = [id]
            self.selection = selection
            self.hasSiblings = hasSiblings
            self.filter = filter
            self.residual = residual
            self.layout = layout
        }
    }

    private struct Link {
        let entry: Int32
        let list: Int32
        var position: Int32
    }

    /// Entries in no particular order, and the link of each.
    struct List: Sendable {
        fileprivate(set) var entries: [Int32] = []
        fileprivate var links: [Int32] = []
    }

    private struct Place {
        let entry: Entry
        var links: [Int32] = []
    }

    private var entries = SlotArray<Place>()
    private var links = SlotArray<Link>()
    private var lists = SlotArray<List>()

    subscript(entry: Int32) -> Entry { entries[entry].entry }

    func entryList(_ list: Int32) -> List { lists[list] }

    mutating func makeList() -> Int32 { lists.insert(List()) }

    mutating func removeList(_ list: Int32) { lists.remove(list) }

    mutating func insert(_ entry: Entry) -> Int32 { entries.insert(Place(entry: entry)) }

    mutating func linkEntry(_ entry: Int32, to list: Int32) {
        let position = Int32(lists[list].entries.count)
        let link = links.insert(Link(entry: entry, list: list, position: position))
        lists[list].entries.append(entry)
        lists[list].links.append(link)
        entries[entry].links.append(link)
    }

    /// Removes an entry from all of its lists, and returns the lists that are now empty.
    mutating func remove(_ entry: Int32) -> [Int32] {
        var emptied: [Int32] = []
        for number in entries[entry].links {
            let link = links[number]
            let position = Int(link.position)
            let last = lists[link.list].links.removeLast()
            let lastEntry = lists[link.list].entries.removeLast()
            if last != number {
                lists[link.list].links[position] = last
                lists[link.list].entries[position] = lastEntry
                links[last].position = link.position
            }
            if lists[link.list].entries.isEmpty { emptied.append(link.list) }
            links.remove(number)
        }
        entries.remove(entry)
        return emptied
    }
}

/// An array whose elements keep their indices; freed places are reused.
struct SlotArray<Element> {
    private var places: [Element?] = []
    private var free: [Int32] = []

    var count: Int { places.count - free.count }

    /// The element at a place in use.
    subscript(place: Int32) -> Element {
        _read { yield places[Int(place)]! }
        _modify { yield &places[Int(place)]! }
    }

    mutating func insert(_ element: Element) -> Int32 {
        if let place = free.popLast() {
            places[Int(place)] = element
            return place
        }
        places.append(element)
        return Int32(places.count - 1)
    }

    mutating func remove(_ place: Int32) {
        places[Int(place)] = nil
        free.append(place)
    }
}

extension SlotArray: Sendable where Element: Sendable {}
