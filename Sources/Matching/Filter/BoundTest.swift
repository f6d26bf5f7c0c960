/// What a bound condition asks of a column's value. SQL's logic has three values; nil is its NULL.
enum BoundTest: Sendable {
    case isNull
    case isBoolean(Bool)
    case equals(ComparedValue)
    /// IS DISTINCT FROM
    case differs(ComparedValue)
    case ordered(FilterOperator, ComparedValue)
    case member(Set<ComparedValue>, hasNull: Bool)
    case like(LikePattern)
    /// For Postgres; NULL needs no question, unless it is a matter of IS DISTINCT FROM.
    case asked(isDistinct: Bool)

    /// The answer for a row whose column is NULL.
    var forNull: Bool? {
        switch self {
        case .isNull: true
        case .isBoolean: false
        case .differs: true
        case .asked(let isDistinct): isDistinct ? true : nil
        // Nothing is a member of an empty list, not even NULL.
        case .member(let values, let hasNull): values.isEmpty && !hasNull ? false : nil
        case .equals, .ordered, .like: nil
        }
    }

    enum Answer {
        case yes, no, null, unknown
    }

    func answer(for value: ComparedValue) -> Answer {
        switch self {
        case .isNull: .no
        case .isBoolean(let wanted): value == .ordinal(wanted ? 1 : 0) ? .yes : .no
        case .equals(let other): value == other ? .yes : .no
        case .differs(let other): value == other ? .no : .yes
        case .ordered(let name, let other): isOrdered(value, name, other) ? .yes : .no
        case .member(let values, let hasNull): values.contains(value) ? .yes : hasNull ? .null : .no
        case .like(let pattern):
            if case .bytes(let text) = value, let isMatch = pattern.matches(text) {
                isMatch ? .yes : .no
            } else {
                .unknown
            }
        case .asked: .unknown
        }
    }

    private func isOrdered(_ value: ComparedValue, _ name: FilterOperator, _ other: ComparedValue) -> Bool {
        switch name {
        case .lt: value.precedes(other)
        case .lte: !other.precedes(value)
        case .gt: other.precedes(value)
        default: !value.precedes(other)
        }
    }
}
