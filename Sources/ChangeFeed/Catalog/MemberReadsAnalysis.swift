import Wire

/// Derives from a table's parsed policies what they read of members tables.
///
/// A query's view of a table depends only on the rows that meet its WHERE. So a comparison there with the scope column or
/// the user, at the top level or joined by AND, narrows the rows that count, whatever else the query does; and so does a
/// comparison of the query's first column with the scope column (`conversation_id in (select …)`), if nothing comes between
/// the rows and that column. Functions that consist of one query are followed.
struct MemberReadsAnalysis {
    /// A construct was met that may read anything.
    struct NotUnderstood: Error {}

    private enum Operand: Equatable {
        case scope
        case user(Name)
        case other
    }

    private struct Context {
        /// Number of enclosing queries.
        var level = 0
        /// True if the judged row is outside of all levels.
        var hostsRow = true
        var arguments: [Operand] = []
        var owner: UInt32?
        var calls = 0
        /// True if the first column of the next query is compared with the scope column.
        var outputIsScope = false
    }

    private struct Narrowing {
        var value: Int?
        var user: Int?
    }

    private static let mostCalls = 5
    private let lookup: any PolicyLookup
    /// The number and kind of the only scope column; nil if there are several, or if its kind is not comparable.
    private let column: (number: Int, kind: String)?
    private(set) var reads: [UInt32: MemberReads] = [:]
    /// The SQL of the expression that users are compared by; the first one met.
    private(set) var userKey: Name?

    init(column: (number: Int, kind: String)?, lookup: any PolicyLookup) {
        self.column = column
        self.lookup = lookup
    }

    /// Adds the reads of one policy.
    ///
    /// - Throws: `NotUnderstood`, `PostgresError`.
    mutating func add(policy tree: NodeTree) throws { try walkTree(tree, Context()) }

    private mutating func walkTree(_ tree: NodeTree, _ context: Context) throws {
        guard case .node(let node) = tree else {
            for part in tree.parts { try walkTree(part, context) }
            return
        }
        var inner = context
        inner.outputIsScope = false
        switch node.label {
        case "QUERY": return try walk(query: node, context)
        case "FUNCEXPR": try followCall(node, context)
        case "SUBLINK":
            if node.number("subLinkType") == 2, let test = node["testexpr"], try isScope(test, context),
                let query = node["subselect"]
            {
                inner.outputIsScope = true
                return try walkTree(query, inner)
            }
        case "SCALARARRAYOPEXPR":
            let arguments = node.list("args")
            if node.isTrue("useOr"), arguments.count == 2, let operation = node.oid("opno"),
                try lookup.isEquality(operation),
                try resolveOperand(arguments[0], context) == .scope, let link = arguments[1].node("SUBLINK"),
                link.number("subLinkType") == 6, let query = link["subselect"]
            {
                inner.outputIsScope = true
                return try walkTree(query, inner)
            }
            try demandOfCatalog(node, "opfuncid")
        case "OPEXPR", "DISTINCTEXPR", "NULLIFEXPR": try demandOfCatalog(node, "opfuncid")
        case "AGGREF": try demandOfCatalog(node, "aggfnoid")
        case "WINDOWFUNC": try demandOfCatalog(node, "winfnoid")
        // A domain's check may be a function.
        case "COERCETODOMAIN", "TABLESAMPLECLAUSE", "TABLEFUNC": throw NotUnderstood()
        default: break
        }
        for part in tree.parts { try walkTree(part, inner) }
    }

    private mutating func walk(query: NodeTree.Fields, _ outer: Context) throws {
        var context = outer
        context.level += 1
        context.outputIsScope = false
        let tables = query.list("rtable").map { $0.node("RANGETBLENTRY") ?? $0.node("RTE") }
        guard query.number("commandType") == 1, !tables.contains(where: { $0 == nil }) else { throw NotUnderstood() }
        var narrowings = [Narrowing](repeating: Narrowing(), count: tables.count)
        for condition in Self.conjuncts(of: query["jointree"]?.node("FROMEXPR")?["quals"]) {
            guard let node = condition.node("OPEXPR"), let operation = node.oid("opno"),
                try lookup.isEquality(operation)
            else { continue }
            let sides = node.list("args")
            guard sides.count == 2 else { continue }
            for (own, other) in [(sides[0], sides[1]), (sides[1], sides[0])] {
                guard let (table, number) = Self.columnReference(own), narrowings.indices.contains(table) else {
                    continue
                }
                switch try resolveOperand(other, context) {
                case .scope: narrowings[table].value = number
                case .user(let key):
                    if userKey == nil { userKey = key }
                    if userKey == key { narrowings[table].user = number }
                case .other: break
                }
            }
        }
        var calls: Set<Int> = []
        var isCallOfTarget = false
        if outer.outputIsScope, Self.isPlain(query),
            let target = query.list("targetList").first?.node("TARGETENTRY")?["expr"]
        {
            if let (table, number) = Self.columnReference(target), narrowings.indices.contains(table) {
                narrowings[table].value = number
                if number == 1 { calls.insert(table) }
            }
            isCallOfTarget = target.node("FUNCEXPR")?.isTrue("funcretset") ?? false
        }
        for (index, table) in tables.enumerated() {
            guard let table else { continue }
            if table.number("rtekind") == 0 { try recordTable(table, of: query, narrowings[index], context) }
            for function in table.list("functions") {
                guard let call = function.node("RANGETBLFUNCTION")?["funcexpr"] else { throw NotUnderstood() }
                var inner = context
                inner.outputIsScope = calls.contains(index) && table.list("functions").count == 1
                try walkTree(call, inner)
            }
            for (name, values) in table.values where name != "functions" {
                for value in values { try walkTree(value, context) }
            }
        }
        for (name, values) in query.values where name != "rtable" {
            var inner = context
            inner.outputIsScope = name == "targetList" && isCallOfTarget
            for value in values {
                // Only the first column is compared.
                for (place, part) in (value.elements ?? [value]).enumerated() {
                    if place > 0 { inner.outputIsScope = false }
                    let expression = inner.outputIsScope ? part.node("TARGETENTRY")?["expr"] ?? part : part
                    try walkTree(expression, inner)
                }
            }
        }
    }

    /// Records a table that a query names.
    private mutating func recordTable(
        _ table: NodeTree.Fields, of query: NodeTree.Fields, _ narrowing: Narrowing, _ context: Context
    ) throws {
        guard let oid = table.oid("relid"), let facts = try lookup.findRelation(oid, asOwnerOf: context.owner),
            facts.isTable,
            !facts.isRestricted
        else { throw NotUnderstood() }
        var rights = table
        // Since Postgres 16, the columns are in a separate list.
        if let place = table.number("perminfoindex"), place > 0 {
            let all = query.list("rteperminfos")
            guard all.indices.contains(place - 1), let node = all[place - 1].node("RTEPERMISSIONINFO") else {
                throw NotUnderstood()
            }
            rights = node
        }
        guard let selected = rights["selectedCols"]?.elements, selected.first == .word("b") else {
            throw NotUnderstood()
        }
        var columns: Set<Name>? = []
        for bit in selected.dropFirst() {
            guard let bit = bit.word.flatMap({ Int($0) }) else { throw NotUnderstood() }
            // FirstLowInvalidHeapAttributeNumber: 0 would be the whole row, and lower numbers are system columns.
            columns = facts.columns[bit - 7].flatMap { column in columns?.union([column.name]) }
        }
        let value = narrowing.value.flatMap { facts.columns[$0] }
        let user = narrowing.user.flatMap { facts.columns[$0] }
        let access = MemberReads.Access(
            value: value?.kind != nil && value?.kind == column?.kind ? value.map(\.name) : nil,
            user: user?.kind != nil ? user.map(\.name) : nil)
        if reads[facts.root] == nil { reads[facts.root] = MemberReads(columns: [], accesses: []) }
        reads[facts.root]?.addRead(columns, access)
    }

    private mutating func followCall(_ node: NodeTree.Fields, _ context: Context) throws {
        guard let oid = node.oid("funcid"), let routine = try lookup.findRoutine(oid) else { throw NotUnderstood() }
        if routine.isOfCatalog {
            guard !Self.readers.contains(routine.name) else { throw NotUnderstood() }
            return
        }
        guard let body = routine.body, context.calls < Self.mostCalls else { throw NotUnderstood() }
        var inner = Context()
        inner.hostsRow = false
        inner.arguments = try node.list("args").map { try resolveOperand($0, context) }
        inner.owner = routine.isSecurityDefiner ? oid : context.owner
        inner.calls = context.calls + 1
        inner.outputIsScope = context.outputIsScope
        // A function's body is a list of lists of queries.
        var queries = [body]
        while queries.count == 1, let deeper = queries[0].elements { queries = deeper }
        guard queries.count == 1, let query = queries[0].node("QUERY") else { throw NotUnderstood() }
        try walk(query: query, inner)
    }

    /// Postgres' own functions that read whatever their arguments name.
    private static let readers: Set<String> = Set(
        ["table", "query", "cursor", "schema", "database"].flatMap { source in
            ["xml", "xmlschema", "xml_and_xmlschema"].map { "pg_catalog.\(source)_to_\($0)" }
        } + ["pg_catalog.ts_stat", "pg_catalog.ts_rewrite"])

    private func demandOfCatalog(_ node: NodeTree.Fields, _ field: String) throws {
        guard let oid = node.oid(field), oid < 16384 else { throw NotUnderstood() }
    }

    // MARK: Operands

    private func resolveOperand(_ tree: NodeTree, _ context: Context) throws -> Operand {
        guard case .node(let node) = tree else { return .other }
        switch node.label {
        case "RELABELTYPE": return try node["arg"].map { try resolveOperand($0, context) } ?? .other
        case "VAR":
            let isRow = context.hostsRow && node.number("varno") == 1 && node.number("varlevelsup") == context.level
            return isRow && column != nil && node.number("varattno") == column?.number ? .scope : .other
        case "PARAM":
            guard node.number("paramkind") == 0, !context.hostsRow, let number = node.number("paramid"),
                context.arguments.indices.contains(number - 1)
            else { return .other }
            return context.arguments[number - 1]
        case "FUNCEXPR":
            guard node.list("args").isEmpty, !node.isTrue("funcretset"), let oid = node.oid("funcid"),
                let routine = try lookup.findRoutine(oid), try isOfClaims(routine, calls: 0)
            else { return .other }
            return .user(Name(routine.name + "()"))
        case "SUBLINK":
            // For example: (select auth.uid())
            guard node.number("subLinkType") == 4, let query = node["subselect"]?.node("QUERY"),
                query.isEmpty("rtable"), query.isEmpty("cteList"),
                query["jointree"]?.node("FROMEXPR")?.isEmpty("quals") ?? false,
                Self.isPlain(query), let target = query.list("targetList").first?.node("TARGETENTRY")?["expr"]
            else { return .other }
            var inner = context
            inner.level += 1
            return try resolveOperand(target, inner)
        default: return .other
        }
    }

    /// True if a function's value depends only on the session's settings: it reads no table, and nothing that changes over
    /// time.
    private func isOfClaims(_ routine: RoutineFacts, calls: Int) throws -> Bool {
        if routine.isOfCatalog { return routine.isImmutable || routine.name == "pg_catalog.current_setting" }
        guard !routine.isVolatile, let body = routine.body, calls < Self.mostCalls else { return false }
        return try isOfClaims(body, calls: calls + 1)
    }

    private func isOfClaims(_ tree: NodeTree, calls: Int) throws -> Bool {
        if case .node(let node) = tree {
            if ["SQLVALUEFUNCTION", "NEXTVALUEEXPR", "COERCETODOMAIN", "TABLESAMPLECLAUSE"].contains(node.label) {
                return false
            }
            if node.label == "RANGETBLENTRY" || node.label == "RTE", node.number("rtekind") == 0 { return false }
            for field in ["funcid", "opfuncid", "aggfnoid", "winfnoid"] {
                guard let oid = node.oid(field), oid != 0 else { continue }
                guard let routine = try lookup.findRoutine(oid), try isOfClaims(routine, calls: calls) else {
                    return false
                }
            }
        }
        return try tree.parts.allSatisfy { try isOfClaims($0, calls: calls) }
    }

    /// True if the test of an `in` compares the scope column with the subquery's first column.
    private func isScope(_ test: NodeTree, _ context: Context) throws -> Bool {
        guard let node = test.node("OPEXPR"), let operation = node.oid("opno"), try lookup.isEquality(operation) else {
            return false
        }
        let sides = node.list("args")
        guard sides.count == 2 else { return false }
        func isOutput(_ tree: NodeTree) -> Bool {
            let bare = tree.node("RELABELTYPE")?["arg"] ?? tree
            guard let parameter = bare.node("PARAM") else { return false }
            return parameter.number("paramkind") == 2 && parameter.number("paramid") == 1
        }
        return try resolveOperand(sides[0], context) == .scope && isOutput(sides[1])
            || resolveOperand(sides[1], context) == .scope && isOutput(sides[0])
    }

    /// A column of the query's own tables: the table's index and the column's number.
    private static func columnReference(_ tree: NodeTree) -> (table: Int, number: Int)? {
        let bare = tree.node("RELABELTYPE")?["arg"] ?? tree
        guard let node = bare.node("VAR"), node.number("varlevelsup") == 0, let table = node.number("varno"),
            let number = node.number("varattno"), table > 0, number > 0
        else { return nil }
        return (table - 1, number)
    }

    private static func conjuncts(of tree: NodeTree?) -> [NodeTree] {
        guard let tree else { return [] }
        guard let node = tree.node("BOOLEXPR"), node["boolop"]?.word == "and" else { return [tree] }
        return node.list("args").flatMap { conjuncts(of: $0) }
    }

    /// True if each row of the result is, by itself, one of the rows that meet the conditions.
    private static func isPlain(_ query: NodeTree.Fields) -> Bool {
        !query.isTrue("hasAggs") && !query.isTrue("hasWindowFuncs") && !query.isTrue("hasDistinctOn")
            && ["groupClause", "groupingSets", "havingQual", "limitOffset", "limitCount", "setOperations"]
                .allSatisfy { query.isEmpty($0) }
    }
}
