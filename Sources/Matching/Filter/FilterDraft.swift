package import Wire

/// A filter in the course of being bound: its columns exist, and its values are read as far as the hub can read them.
///
///     let draft = try filter.bind(to: table)
///     let bound = try draft.makeFilter(answers: draft.queries.isEmpty ? [] : await ask(draft.queries))
package struct FilterDraft: Sendable {
    package let table: Table
    /// Queries that Postgres has to answer first. Empty for most filters; the queries of many drafts may share a statement.
    package private(set) var queries: [ValidationQuery] = []
    private var pending: [PendingCondition] = []

    init(_ filter: ChangeFilter, table: Table) throws(SubscriptionError) {
        self.table = table
        for condition in filter.conditions {
            guard let index = table.columns.firstIndex(where: { $0.name == condition.column }) else {
                throw .missingColumn(condition.column, in: table)
            }
            pending.append(try makePending(condition, index))
        }
    }

    /// The bound filter, given one answer per query in the queries' order.
    package func makeFilter(answers: [JSON] = []) throws(SubscriptionError) -> BoundFilter {
        guard answers.count == queries.count else {
            throw SubscriptionError(
                "\(queries.count) answers about the filter are needed and \(answers.count) were given")
        }
        var conditions: [BoundCondition] = []
        for condition in pending {
            conditions.append(try condition.makeCondition(table, queries, answers))
        }
        return BoundFilter(table: table, conditions: conditions)
    }

    private mutating func makePending(_ condition: FilterCondition, _ index: Int) throws(SubscriptionError)
        -> PendingCondition
    {
        let column = table.columns[index]
        var result = PendingCondition(source: condition, index: index)
        switch condition.test {
        case .keyword(let keyword):
            if keyword != .null, column.comparison != .boolean {
                throw SubscriptionError(
                    "is.\(keyword.rawValue) needs a boolean column, but column "
                        + "\(SubscriptionError.quoteText(column.name.text)) is of type \(column.sqlType)")
            }
        case .value(let name, let value) where name.isPattern:
            try checkPattern(name, value, column, condition)
            result.isAsked = name != .like || !column.isComparedAsText
        case .value(let name, let value):
            let isOrder = name != .eq && name != .neq && name != .isdistinct
            result.isAsked = column.comparison == .postgres || (isOrder && !column.isOrderedInProcess)
            if !result.isAsked {
                result.values = [try makeSlot(value, column, condition)]
            } else if !column.isComparedAsText {
                queries.append(.acceptance(condition, column, of: table))
            }
        case .list(let members):
            result.isAsked = column.comparison == .postgres && !members.isEmpty
            if result.isAsked { queries.append(.acceptance(condition, column, of: table)) }
            for member in members where !result.isAsked {
                if let member { result.values.append(try makeSlot(member, column, condition)) }
            }
        }
        return result
    }

    private mutating func checkPattern(
        _ name: FilterOperator, _ pattern: String, _ column: Column, _ condition: FilterCondition
    ) throws(SubscriptionError) {
        guard column.isTextLike else {
            throw SubscriptionError(
                "\(name.rawValue) needs a text column, but column \(SubscriptionError.quoteText(column.name.text)) is of type "
                    + column.sqlType.text)
        }
        let isExpression = name == .match || name == .imatch
        if !isExpression, LikePattern(pattern) == nil {
            let condition = SubscriptionError.quoteText(condition.description)
            throw SubscriptionError("the pattern of filter condition \(condition) ends in a lone backslash")
        }
        // Non-deterministic collations refuse patterns of every kind.
        if isExpression || !column.isComparedAsText { queries.append(.pattern(condition, column, of: table)) }
    }

    private mutating func makeSlot(
        _ value: String, _ column: Column, _ condition: FilterCondition
    ) throws(SubscriptionError) -> PendingCondition.Slot {
        switch FilterValueReader.readValue(value, for: column) {
        case .value(let value): return .value(value)
        case .invalid(let reason):
            throw SubscriptionError(
                "value \(SubscriptionError.quoteText(value)) \(reason) in filter condition "
                    + SubscriptionError.quoteText(condition.description))
        case .unsure:
            queries.append(.canonical(value, column, of: table, in: condition))
            return .answer(queries.count - 1)
        }
    }
}

extension ChangeFilter {
    /// Looks up the columns and reads the values by the columns' types.
    package func bind(to table: Table) throws(SubscriptionError) -> FilterDraft {
        try FilterDraft(self, table: table)
    }
}

/// A condition with values that Postgres may still have to read.
struct PendingCondition: Sendable {
    let source: FilterCondition
    let index: Int
    /// True if Postgres has to evaluate the condition for each change.
    var isAsked = false
    var values: [Slot] = []

    init(source: FilterCondition, index: Int) {
        self.source = source
        self.index = index
    }

    enum Slot: Sendable {
        case value(ComparedValue)
        /// Index of the query that returns the value.
        case answer(Int)
    }

    func makeCondition(
        _ table: Table, _ queries: [ValidationQuery], _ answers: [JSON]
    ) throws(SubscriptionError) -> BoundCondition {
        let column = table.columns[index]
        var values: [ComparedValue] = []
        for slot in self.values {
            switch slot {
            case .value(let value): values.append(value)
            case .answer(let number):
                guard let value = CellReader.readCell(answers[number].bytes, of: column) else {
                    throw queries[number].refusalError("its value cannot be read")
                }
                values.append(value)
            }
        }
        let (test, isFlipped) = makeTest(values)
        return BoundCondition(
            column: column, index: index, test: test, isNegated: source.isNegated != isFlipped, source: source)
    }

    /// The test, and whether it is the opposite of the client's.
    private func makeTest(_ values: [ComparedValue]) -> (BoundTest, isFlipped: Bool) {
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
            // NULL stays NULL under negation, so this is equivalent.
            case .neq: return (.equals(value), true)
            case .isdistinct: return (.differs(value), false)
            default: return (.ordered(name, value), false)
            }
        }
    }
}
