import Postgres

/// What a policy function returned (`PolicyBody.sql`).
struct PolicyReply {
    struct Problem: Hashable {
        let state: String
        let message: String
    }

    /// For each subject of the call the records it may see, as indices.
    private(set) var seen: [Set<Int>]
    /// The subjects of the call, as indices, whose policies met an error.
    private(set) var failed: [Int] = []
    /// Those of them whose error may pass. What a policy cannot make of a user's claims and a row (class 22, data exception:
    /// a `sub` that is no uuid) it can never make of them.
    private(set) var undecided: [Int] = []
    /// Records that are no rows of the table any more.
    private(set) var isBroken = false
    private(set) var tablesRead: Set<UInt32> = []
    /// With the number of subjects each has met.
    private(set) var problems: [Problem: Int] = [:]

    /// - Returns: nil for a result of another shape.
    init?(_ result: QueryResult, subjects: Int) {
        guard result.width == 5, result.count == subjects + 1 else { return nil }
        seen = Array(repeating: [], count: subjects)
        for row in 0..<result.count {
            let numbers = Self.numbers(result.bytes(row, 1))
            if let subject = result.integer(row, 0) {
                guard seen.indices.contains(Int(subject) - 1) else { return nil }
                seen[Int(subject) - 1] = Set(numbers.map { $0 - 1 })
                if let state = result.text(row, 2) {
                    failed.append(Int(subject) - 1)
                    if !state.hasPrefix("22") { undecided.append(Int(subject) - 1) }
                }
            } else {
                isBroken = !numbers.isEmpty
                tablesRead = Set(Self.numbers(result.bytes(row, 4)).compactMap { UInt32(exactly: $0) })
            }
            if let state = result.text(row, 2) {
                problems[Problem(state: state, message: result.text(row, 3) ?? ""), default: 0] += 1
            }
        }
    }

    /// Whether an error is one that a table altered meanwhile may have caused.
    var mayBeStale: Bool {
        isBroken || problems.keys.contains { SQLState.isOfThePolicy($0.state) }
    }

    /// `{1,2,3}`
    private static func numbers(_ text: UnsafeBufferPointer<UInt8>?) -> [Int] {
        var numbers: [Int] = []
        var number: Int?
        for byte in text ?? UnsafeBufferPointer(start: nil, count: 0) {
            if (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) {
                number = (number ?? 0) * 10 + Int(byte - UInt8(ascii: "0"))
            } else if let found = number {
                numbers.append(found)
                number = nil
            }
        }
        return numbers
    }
}

extension SQLState {
    /// Class 42 is about the names and types of a statement, 0A about what Postgres does not support (a plan whose
    /// types have changed), XX about its inside: whatever the row, it fails.
    static func isOfThePolicy(_ state: String) -> Bool {
        ["42", "0A", "XX"].contains { state.hasPrefix($0) }
    }
}
