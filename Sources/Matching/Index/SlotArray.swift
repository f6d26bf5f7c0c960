/// An array whose places keep their numbers, and are used again.
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
