import Hub
import Matching
import Postgres
import Wire

/// How the engine answers for one table, role and command, until the catalog changes.
struct PolicyPlan {
    struct Key: Hashable {
        let table: UInt32
        let role: Name
        let command: PolicyQuestion.Command
        let userKey: Name?

        init(_ question: PolicyQuestion) {
            table = question.table.oid
            role = question.role
            command = question.command
            userKey = question.userKey
        }
    }

    enum Way {
        /// The sentence says what the role lacks.
        case denied(String)
        case unrestricted
        /// No policy grants anything.
        case nothing
        /// The sentence says why Postgres takes no such function.
        case failed(String, PolicyFailure)
        case ask(PolicyFunction)
    }

    let description: PolicyDescription
    private(set) var way: Way
    private let madeAt = ContinuousClock.now
    /// Between tries of what Postgres did not take.
    private static let rest = Duration.seconds(1)

    /// - Parameter name: of the function to create, where one is needed.
    init(_ question: PolicyQuestion, _ description: PolicyDescription, name: String, serverVersion: Int) {
        self.description = description
        if let denial = PolicyDenial(question, description, serverVersion: serverVersion) {
            way = .denied(denial.sentence)
        } else if !description.isRestricted {
            way = .unrestricted
        } else if let function = PolicyFunction(name: name, question: question, description: description) {
            way = .ask(function)
        } else {
            way = .nothing
        }
    }

    /// Its function, where one has to be asked.
    var function: PolicyFunction? {
        guard case .ask(let function) = way else { return nil }
        return function
    }

    /// Postgres took no such function, and might by now: what the policies call may be there again.
    func isWorthRetrying(at now: ContinuousClock.Instant) -> Bool {
        guard case .failed = way else { return false }
        return now - madeAt > Self.rest
    }

    mutating func fail(_ sentence: String, _ failure: PolicyFailure) { way = .failed(sentence, failure) }
}

/// What the catalog says of a role's rights to a table's rows (`PolicyDescription in Policies.sql`).
struct PolicyDescription: Equatable {
    let roleExists: Bool
    let isAssumable: Bool
    /// The hub's own role.
    let hub: Name
    let mayCreateFunctions: Bool
    let schema: Name?
    let name: Name?
    let mayUseSchema: Bool
    let mayWrite: Bool
    let isRestricted: Bool
    /// SQL; nil where no policy grants anything. A policy is another one if a byte of it is.
    let permissive: Name?
    let restrictive: Name?
    /// A policy may look at the row as a whole.
    let readsRow: Bool
    private let columns: Set<Name>
    /// The columns a record has to have to be asked about.
    let columnsSent: Set<Name>
    /// A text array that differs when one of them is not the same any more.
    let marks: Name
    /// Those of the columns sent whose null JSON does not tell from SQL's, and those that have such values inside.
    let jsonColumns: Set<Name>
    let nestedColumns: Set<Name>
    /// Schemas that the policies name and the role may not use, as SQL.
    let unusableSchemas: Name?

    /// - Returns: nil for a result of another shape.
    init?(_ result: QueryResult) {
        guard result.count == 1, result.width == 18 else { return nil }
        func names(_ column: Int) -> Set<Name> {
            guard let list = result.bytes(0, column) else { return [] }
            return Set(JSON(trusted: Array(list)[...]).elements.compactMap { $0.string.map { Name($0) } })
        }
        roleExists = result.flag(0, 0)
        isAssumable = result.flag(0, 1)
        hub = result.name(0, 2) ?? ""
        mayCreateFunctions = result.flag(0, 3)
        schema = result.name(0, 4)
        name = result.name(0, 5)
        mayUseSchema = result.flag(0, 6)
        mayWrite = result.flag(0, 7)
        isRestricted = result.flag(0, 8)
        permissive = result.name(0, 9)
        restrictive = result.name(0, 10)
        readsRow = result.flag(0, 11)
        columns = names(12)
        columnsSent = names(13)
        marks = result.name(0, 14) ?? "{}"
        unusableSchemas = result.name(0, 15)
        jsonColumns = names(16)
        nestedColumns = names(17)
    }

    /// The condition that a row has to meet; nil where none does.
    var condition: String? {
        guard let permissive else { return nil }
        return restrictive.map { "(\(permissive)) AND \($0)" } ?? "(\(permissive))"
    }

    /// The columns that policies may look at; nil for any.
    var columnsRead: Set<Name>? { readsRow ? nil : columns }
}

/// The SQL of the temporary function that asks a table's policies for one role.
///
/// The table's name stands in a policy for the row, so the row goes by that name where the policy is evaluated, and
/// nothing else there may be called like one of its columns.
struct PolicyFunction {
    /// In `pg_temp`.
    let name: String
    /// Creates what lasts as long as the session.
    let creation: String
    /// Creates what has to be created in each transaction that asks; see PolicyStored in Policies.sql.
    let preparation: String?
    let isReadOnly: Bool

    /// - Returns: nil where no policy grants anything.
    init?(name: String, question: PolicyQuestion, description: PolicyDescription) {
        guard let condition = description.condition, let schema = description.schema, let table = description.name
        else {
            return nil
        }
        self.name = name
        // PostgREST reads in read-only transactions and writes in others.
        isReadOnly = question.command == .select
        let row = PolicyRow(schema: schema, table: table, description: description)
        let isStored = description.unusableSchemas != nil
        let stored = "pg_temp.\(name)_stored"
        let many =
            isStored
            ? "array(select s.k from \(stored)(rows_, picks[a:b]) as s (k))"
            : "array(\(row.query(of: "picks[a:b]", where: condition)))"
        let one =
            isStored
            ? "exists (select from \(stored)(rows_, picks[k:k]))"
            : "(select \(condition) from \(row.item("rows_", at: "picks[k]")))"
        let body = SQLTemplate(PolicySQL.policyBody.text).filled(
            [
                "type": row.type, "role": SQLText.literal(question.role.text), "table": "\(question.table.oid)",
                "many": many, "one": one,
                "key": question.userKey.map {
                    SQLTemplate(withoutComments: PolicySQL.policyKey.text).filled(["expression": $0.text])
                } ?? "",
                "nulls": Self.nulls(in: description.jsonColumns),
                "marks": SQLText.literal(description.marks.text), "whole": "\(description.readsRow)",
            ])
        creation = SQLTemplate(PolicySQL.policyFunction.text).filled(["name": name, "body": SQLText.literal(body)])
        preparation =
            isStored
            ? SQLTemplate(PolicySQL.policyStored.text).filled(
                ["name": name, "type": row.type, "query": row.query(of: "picks", where: condition)])
            : nil
    }

    /// SQL that puts JSON nulls where they were.
    private static func nulls(in columns: Set<Name>) -> String {
        guard !columns.isEmpty else { return "" }
        let line = SQLTemplate(withoutComments: PolicySQL.policyNull.text)
        let lines = columns.sorted().map { column in
            line.filled(["literal": SQLText.literal(column.text), "column": SQLText.identifier(column)])
        }
        return SQLTemplate(withoutComments: PolicySQL.policyNulls.text)
            .filled(["columns": lines.joined(separator: "\n")])
    }
}

/// A row of the table, as its policies name it.
private struct PolicyRow {
    let type: String
    private let alias: String
    private let isWhole: Bool
    /// A name that nothing in a policy has.
    private let number: String

    init(schema: Name, table: Name, description: PolicyDescription) {
        type = SQLText.identifier(schema) + "." + SQLText.identifier(table)
        alias = SQLText.identifier(table)
        isWhole = description.readsRow
        var number = "roost_row"
        while table.text == number || description.condition?.contains(number) == true { number += "_" }
        self.number = number
    }

    /// A FROM item with the row `rows[index]`. Only the second has the type of the table, which a policy that hands the
    /// whole row to a function asks for; the first costs less, as Postgres makes nothing but expressions of it.
    func item(_ rows: String, at index: String) -> String {
        isWhole
            ? "pg_catalog.unnest(\(rows)[\(index):\(index)]) as \(alias)"
            : "(select (\(rows)[\(index)]).*) as \(alias)"
    }

    /// The numbers out of `picks` whose rows meet the condition.
    func query(of picks: String, where condition: String) -> String {
        "select \(number).\(number) from pg_catalog.unnest(\(picks)) as \(number) (\(number)), "
            + "lateral \(item("rows_", at: "\(number).\(number)")) where \(condition)"
    }
}
