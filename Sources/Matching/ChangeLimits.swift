/// The limits of row-change subscriptions, and where to begin reading this room.
///
/// What happens to a subscription and to a change, step by step:
/// 1. **Parse.** A client's entry becomes a `ChangeBinding`: its `ChangeParameters`, its id, its echo. Its filter text
///    becomes a `ChangeFilter` (`Filter/`).
/// 2. **Bind.** `ChangeFilter.bind(to:)` looks the columns up in a `Table` and reads the values as their types do
///    (`Values/`). What only Postgres can read comes out as `ValidationQuery`s (`Postgres/`), which the caller asks in
///    one round trip for as many joins as it likes; the answers make a `BoundFilter`.
/// 3. **Index.** A channel's `BoundBinding`s enter the `SubscriptionIndex` as one group (`Index/`).
/// 4. **Match.** `SubscriptionIndex.match` parses a `RowChange` once and finds the groups that want it: by hash where
///    the filter has an equality, else one after the other. Conditions that depend on a collation, a regular expression
///    or a type the hub does not compare itself come back undecided; a `PostgresBatch` asks all of them in one round
///    trip.
/// 5. **Encode.** `ChangeEncoder` writes the `data` that clients receive, once per selection of columns.
///
/// Everything here is pure: who runs the queries and who sends the bytes is not this room's concern.
package enum ChangeLimits {
    /// How many values an `in` list may hold.
    package static let listValues = 100
    /// How long the text of a filter may be, and how many conditions it may have.
    package static let filterBytes = 16_384
    package static let conditions = 20
    /// How long one value of a filter may be. Postgres reads it with the input function of the column's type, whose cost
    /// grows with it (a numeric of 131,072 digits, a deep json).
    package static let valueBytes = 2_048
    /// How long a value may be as Postgres writes it.
    package static let canonicalBytes = 8_192
    /// The pattern of a `like` or `ilike`: its length, and how many `%` it may have. Matching costs up to the product of its
    /// length and the text's.
    package static let likeBytes = 256
    package static let likeWildcards = 20
    /// How large `data` may be: 1 MiB, which is all that the Python client accepts in a message, less room for the
    /// frame around it.
    package static let dataBytes = 1_048_576 - 16_384
    /// The largest value, as JSON, that a reduced record keeps.
    package static let reducedValueBytes = 64
}

/// Holds one condition of a filter to the limits on what it can cost, before anybody computes with it.
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
