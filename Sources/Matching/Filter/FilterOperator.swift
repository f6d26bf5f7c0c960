/// The operators of the filter grammar, named as clients write them.
package enum FilterOperator: String, CaseIterable, Sendable {
    case eq, neq, lt, lte, gt, gte, like, ilike, match, imatch, isdistinct
    case inList = "in"
    case isKeyword = "is"

    /// Whether the operator compares with a pattern, which only text has.
    package var isPattern: Bool {
        switch self {
        case .like, .ilike, .match, .imatch: true
        default: false
        }
    }

    static let list = allCases.map(\.rawValue).sorted().joined(separator: ", ")
}
