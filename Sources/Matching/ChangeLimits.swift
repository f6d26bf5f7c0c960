/// The limits of row-change subscriptions, and the place to begin reading this room.
///
/// The steps of a subscription and of a change:
/// 1. **Parse.** A client's entry becomes a `ChangeBinding`: its `ChangeParameters`, its id, its echo. Its filter text
///   becomes a `ChangeFilter` (`Filter/`).
/// 2. **Bind.** `ChangeFilter.bind(to:)` looks the columns up in a `Table` and reads the values by their types
///   (`Values/`). Values that only Postgres can read become `ValidationQuery`s (`Postgres/`), which the caller sends in
///   one round trip for any number of joins; the results complete a `BoundFilter`.
/// 3. **Index.** A channel's `BoundBinding`s enter the `SubscriptionIndex` as one group (`Index/`).
/// 4. **Match.** `SubscriptionIndex.match` parses a `RowChange` once and finds the groups that want it: by hash if the
///   filter has an equality, otherwise one after the other. Conditions that depend on a collation, a regular expression
///   or a type that the hub does not compare itself come back undecided; a `PostgresBatch` evaluates them all in one
///   round trip.
/// 5. **Encode.** `ChangeEncoder` writes the `data` that clients receive, once per selection of columns.
///
/// This room is pure: other rooms run the queries and send the bytes.
package enum ChangeLimits {
    /// Number of values in an `in` list.
    package static let listValues = 100
    /// Bytes of a filter's text, and the number of its conditions.
    package static let filterBytes = 16_384
    package static let conditions = 20
    /// Bytes of one filter value. Postgres reads it with the input function of the column's type, whose cost grows with the
    /// length (a numeric of 131,072 digits, a deep json).
    package static let valueBytes = 2_048
    /// Bytes of a value as Postgres writes it.
    package static let canonicalBytes = 8_192
    /// Bytes of a `like` or `ilike` pattern, and the number of its `%`. Matching costs up to the product of the pattern's
    /// length and the text's.
    package static let likeBytes = 256
    package static let likeWildcards = 20
    /// Bytes of `data`: 1 MiB, the most that the Python client accepts in a message, less room for the frame around it.
    package static let dataBytes = 1_048_576 - 16_384
    /// Bytes of the largest value, as JSON, that a reduced record keeps.
    package static let reducedValueBytes = 64
}

/// Checks one condition of a filter against the limits on its cost, before it is evaluated anywhere.
enum FilterBounds {
    static func checkCondition(_ condition: FilterCondition) throws(SubscriptionError) {
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
            "a value of filter condition \(quoteCondition(condition)) is longer than \(ChangeLimits.valueBytes) bytes; "
                + "use a shorter one")
    }

    private static func checkExpression(
        _ pattern: String, _ condition: FilterCondition
    ) throws(SubscriptionError) {
        do {
            _ = try RegularExpression(pattern)
        } catch {
            throw SubscriptionError("the pattern of filter condition \(quoteCondition(condition)) \(error.reason)")
        }
    }

    private static func checkLike(_ pattern: String, _ condition: FilterCondition) throws(SubscriptionError) {
        guard pattern.utf8.count <= ChangeLimits.likeBytes else {
            throw SubscriptionError(
                "the pattern of filter condition \(quoteCondition(condition)) is longer than \(ChangeLimits.likeBytes) bytes"
            )
        }
        guard pattern.utf8.lazy.filter({ $0 == UInt8(ascii: "%") }).count <= ChangeLimits.likeWildcards else {
            throw SubscriptionError(
                "the pattern of filter condition \(quoteCondition(condition)) has more than \(ChangeLimits.likeWildcards) %"
            )
        }
    }

    private static func quoteCondition(_ condition: FilterCondition) -> String {
        SubscriptionError.quoteText(condition.description)
    }
}
