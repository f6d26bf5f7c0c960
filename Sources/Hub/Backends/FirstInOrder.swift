/// Collects the first few elements, in sorted order, of a sequence visited in any order: a page of a list that is not
/// kept sorted. Visiting n elements costs a comparison each, and a move within the page for those that enter it.
struct FirstInOrder<Element> {
    private let limit: Int
    private let precedes: (Element, Element) -> Bool
    private(set) var elements: [Element] = []
    /// More elements were offered than fit.
    private(set) var isCut = false

    /// - Parameter limit: at least 1.
    init(_ limit: Int, by precedes: @escaping (Element, Element) -> Bool) {
        self.limit = limit
        self.precedes = precedes
    }

    mutating func offer(_ element: Element) {
        if elements.count == limit {
            isCut = true
            guard let last = elements.last, precedes(element, last) else { return }
            elements.removeLast()
        }
        var (low, high) = (0, elements.count)
        while low < high {
            let middle = (low + high) / 2
            if precedes(elements[middle], element) { low = middle + 1 } else { high = middle }
        }
        elements.insert(element, at: low)
    }
}
