/// A condition on a column of a table, ready to be evaluated.
final class BoundCondition: Sendable {
    let column: Column
    /// The column's place in the table the filter was bound to.
    let index: Int
    let test: BoundTest
    let isNegated: Bool
    /// What the client wrote, from which SQL is made when Postgres has to decide.
    let source: FilterCondition

    init(column: Column, index: Int, test: BoundTest, isNegated: Bool, source: FilterCondition) {
        self.column = column
        self.index = index
        self.test = test
        self.isNegated = isNegated
        self.source = source
    }

    /// Whether the row is one of those a hash finds: the column equals one of some values.
    var equalTo: [ComparedValue]? {
        guard !isNegated else { return nil }
        switch test {
        case .equals(let value): return [value]
        case .member(let values, _): return Array(values)
        default: return nil
        }
    }

    func verdict(on value: RowValue) -> Verdict {
        switch value {
        case .absent: return .noMatch
        case .opaque: return .unknown
        case .null:
            guard let answer = test.forNull else { return .noMatch }
            return answer != isNegated ? .match : .noMatch
        case .omitted:
            // It is not NULL. Beyond that nobody knows, and a row too many is better than a row lost.
            if case .isNull = test { return isNegated ? .match : .noMatch }
            return .match
        case .value(let value):
            switch test.answer(for: value) {
            case .yes: return isNegated ? .noMatch : .match
            case .no: return isNegated ? .match : .noMatch
            case .null: return .noMatch
            case .unknown: return .unknown
            }
        }
    }
}
