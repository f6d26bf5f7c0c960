/// Finds what somebody probably meant.
enum NearestName {
    /// The closest of `names`, or nil where even that one is too far away to be a slip of the finger.
    static func find(_ name: String, among names: [String]) -> String? {
        let nearest = names.map { (name: $0, distance: distance(name, $0)) }.min { $0.distance < $1.distance }
        guard let nearest, nearest.distance <= max(2, name.count / 3) else { return nil }
        return nearest.name
    }

    /// The fewest insertions, deletions and replacements that make one the other (Levenshtein), a row at a time.
    static func distance(_ left: String, _ right: String) -> Int {
        let left = Array(left.utf8)
        let right = Array(right.utf8)
        var row = Array(0...right.count)
        for (i, a) in left.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, b) in right.enumerated() {
                let replaced = diagonal + (a == b ? 0 : 1)
                diagonal = row[j + 1]
                row[j + 1] = min(replaced, row[j] + 1, row[j + 1] + 1)
            }
        }
        return row[right.count]
    }
}
