import Wire

/// A condition of which some values still have to be read by Postgres.
struct PendingCondition: Sendable {
    let source: FilterCondition
    let index: Int
    /// Each change has to be asked about.
    var isAsked = false
    var values: [Slot] = []

    init(source: FilterCondition, index: Int) {
        self.source = source
        self.index = index
    }

    enum Slot: Sendable {
        case value(ComparedValue)
        /// The number of the query that answers with the value.
        case answer(Int)
    }

    func bound(
        _ table: Table, _ queries: [ValidationQuery], _ answers: [JSON]
    ) throws(SubscriptionError) -> BoundCondition {
        let column = table.columns[index]
        var values: [ComparedValue] = []
        for slot in self.values {
            switch slot {
            case .value(let value): values.append(value)
            case .answer(let number):
                guard let value = CellReader.read(answers[number].bytes, of: column) else {
                    throw queries[number].refusal("its value cannot be read")
                }
                values.append(value)
            }
        }
        let (test, isFlipped) = test(values)
        return BoundCondition(
            column: column, index: index, test: test, isNegated: source.isNegated != isFlipped, source: source)
    }

    /// The test, and whether it is the opposite of what the client asked for.
    private func test(_ values: [ComparedValue]) -> (BoundTest, isFlipped: Bool) {
        switch source.test {
        case .keyword(.null), .keyword(.unknown): return (.isNull, false)
        case .keyword(let keyword): return (.isBoolean(keyword == .true), false)
        case .list(let members):
            return isAsked
                ? (.asked(isDistinct: false), false) : (.member(Set(values), hasNull: members.contains(nil)), false)
        case .value(let name, let text):
            if isAsked { return (.asked(isDistinct: name == .isdistinct), false) }
            if name == .like {
                return LikePattern(text).map { (.like($0), false) } ?? (.asked(isDistinct: false), false)
            }
            guard let value = values.first else { return (.asked(isDistinct: false), false) }
            switch name {
            case .eq: return (.equals(value), false)
            // NULL stays NULL under a negation, so this is the same.
            case .neq: return (.equals(value), true)
            case .isdistinct: return (.differs(value), false)
            default: return (.ordered(name, value), false)
            }
        }
    }
}
