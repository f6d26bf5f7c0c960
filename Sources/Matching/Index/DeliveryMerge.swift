/// Collects the ids of a group and selection in one delivery.
struct DeliveryMerge {
    private struct Key: Hashable {
        let group: Int
        let selection: Selection?
    }

    private(set) var deliveries: [Matches.Delivery]
    private var places: [Key: Int]

    init(_ deliveries: [Matches.Delivery] = []) {
        self.deliveries = deliveries
        places = Dictionary(
            uniqueKeysWithValues: deliveries.enumerated().map { (Key(group: $1.group, selection: $1.selection), $0) })
    }

    mutating func add(_ id: Int, to group: Int, _ selection: Selection?) {
        let key = Key(group: group, selection: selection)
        guard let place = places[key] else {
            places[key] = deliveries.count
            deliveries.append(Matches.Delivery(group: group, selection: selection, ids: [id]))
            return
        }
        let at = deliveries[place].ids.firstIndex { $0 >= id } ?? deliveries[place].ids.count
        if at < deliveries[place].ids.count, deliveries[place].ids[at] == id { return }
        deliveries[place].ids.insert(id, at: at)
    }
}
