/// The filter of a subscription: conditions that a row must all meet.
///
///     filter    := condition *("," condition)       a blank filter has no conditions
///     condition := column "=" ["not."] operator "." value
///     value     := raw text | '"' text in which \" and \\ stand for " and \ '"'
///     value     := "(" member *("," member) ")"     for the operator in
///     value     := null | true | false | unknown    for the operator is
///
/// Where the protocol is silent, this is what the original server does: a comma inside parentheses or a quoted value
/// separates nothing, a quote opens only behind `.`, `(` or `,`, and a quote without an end is text like any other.
package struct ChangeFilter: Hashable, Sendable {
    package let conditions: [FilterCondition]

    package init(conditions: [FilterCondition]) {
        self.conditions = conditions
    }

    package init(parsing text: String) throws(SubscriptionError) {
        conditions = try FilterParser(text).conditions()
    }
}

extension ChangeFilter: CustomStringConvertible {
    /// The canonical text: parsing it gives an equal filter, quotes stand only where they are needed.
    package var description: String {
        conditions.map(\.description).joined(separator: ",")
    }
}
