/// Bounds on what one condition can cost, checked before anybody computes with it.
enum FilterBounds {
    static func check(_ condition: FilterCondition) throws(SubscriptionError) {
        switch condition.test {
        case .keyword: return
        case .list(let members):
            for member in members {
                if let member { try checkLength(member, condition) }
            }
        case .value(let name, let value):
            try checkLength(value, condition)
            switch name {
            case .match, .imatch: try checkExpression(value, condition)
            case .like, .ilike: try checkLike(value, condition)
            default: return
            }
        }
    }

    private static func checkLength(_ value: String, _ condition: FilterCondition) throws(SubscriptionError) {
        guard value.utf8.count > ChangeLimits.valueBytes else { return }
        throw SubscriptionError(
            "a value of filter condition \(quote(condition)) is longer than \(ChangeLimits.valueBytes) bytes; "
                + "use a shorter one")
    }

    private static func checkExpression(
        _ pattern: String, _ condition: FilterCondition
    ) throws(SubscriptionError) {
        do {
            _ = try RegularExpression(pattern)
        } catch {
            throw SubscriptionError("the pattern of filter condition \(quote(condition)) \(error.reason)")
        }
    }

    private static func checkLike(_ pattern: String, _ condition: FilterCondition) throws(SubscriptionError) {
        guard pattern.utf8.count <= ChangeLimits.likeBytes else {
            throw SubscriptionError(
                "the pattern of filter condition \(quote(condition)) is longer than \(ChangeLimits.likeBytes) bytes")
        }
        guard pattern.utf8.lazy.filter({ $0 == UInt8(ascii: "%") }).count <= ChangeLimits.likeWildcards else {
            throw SubscriptionError(
                "the pattern of filter condition \(quote(condition)) has more than \(ChangeLimits.likeWildcards) %")
        }
    }

    private static func quote(_ condition: FilterCondition) -> String {
        SubscriptionError.quote(condition.description)
    }
}
