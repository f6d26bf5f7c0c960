import Hub
import Matching
import Postgres
import Wire

/// The engine's way to answer for one table, role and command, until the catalog changes.
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
        /// The sentence says why Postgres does not accept such a function.
        case failed(String, PolicyFailure)
        case ask(PolicyFunction)
    }

    let description: PolicyDescription
    private(set) var way: Way
    private let madeAt = ContinuousClock.now
    /// Interval between retries of a function that Postgres did not accept.
    private static let rest = Duration.seconds(1)

    /// - Parameter name: the name of the function to create, if one is needed.
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

    /// The plan's function, if one has to be asked.
    var function: PolicyFunction? {
        guard case .ask(let function) = way else { return nil }
        return function
    }

    /// True if Postgres did not accept the function and might now: the objects that the policies call may be back.
    func isWorthRetrying(at now: ContinuousClock.Instant) -> Bool {
        guard case .failed = way else { return false }
        return now - madeAt > Self.rest
    }

    mutating func markFailed(_ sentence: String, _ failure: PolicyFailure) { way = .failed(sentence, failure) }
}

/// A role's rights to a table's rows, according to the catalog (`PolicyDescription in Policies.sql`).
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
    /// SQL; nil if no policy grants anything. A policy that differs in one byte is a different policy.
    let permissive: Name?
    let restrictive: Name?
    /// True if a policy may look at the row as a whole.
    let readsRow: Bool
    private let columns: Set<Name>
    /// The columns that a record needs in order to be judged.
    let columnsSent: Set<Name>
    /// A text array that differs when one of them has changed.
    let marks: Name
    /// Columns sent whose null JSON does not distinguish from SQL's, and columns sent that contain such values.
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

    /// The condition that a row has to meet; nil if no row can.
    var condition: String? {
        guard let permissive else { return nil }
        return restrictive.map { "(\(permissive)) AND \($0)" } ?? "(\(permissive))"
    }

    /// The columns that policies may look at; nil for any.
    var columnsRead: Set<Name>? { readsRow ? nil : columns }
}

/// The SQL of the temporary function that evaluates a table's policies for one role.
///
/// In a policy, the table's name stands for the row. So the row goes by that name where the policy is evaluated, and
/// nothing else there may have the name of one of its columns.
struct PolicyFunction {
    /// In `pg_temp`.
    let name: String
    /// Creates the objects that last as long as the session.
    let creation: String
    /// Creates the objects needed in each transaction that asks; see PolicyStored in Policies.sql.
    let preparation: String?
    let isReadOnly: Bool

    /// - Returns: nil if no policy grants anything.
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

    /// SQL that puts JSON nulls back in their places.
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

/// A row of the table, under the name that its policies use.
private struct PolicyRow {
    let type: String
    private let alias: String
    private let isWhole: Bool
    /// A name that occurs in no policy.
    private let number: String

    init(schema: Name, table: Name, description: PolicyDescription) {
        type = SQLText.identifier(schema) + "." + SQLText.identifier(table)
        alias = SQLText.identifier(table)
        isWhole = description.readsRow
        var number = "roost_row"
        while table.text == number || description.condition?.contains(number) == true { number += "_" }
        self.number = number
    }

    /// A FROM item with the row `rows[index]`. Only the first form has the table's type, as needed by a policy that passes
    /// the whole row to a function; the second costs less, because Postgres reduces it to expressions.
    func item(_ rows: String, at index: String) -> String {
        isWhole
            ? "pg_catalog.unnest(\(rows)[\(index):\(index)]) as \(alias)"
            : "(select (\(rows)[\(index)]).*) as \(alias)"
    }

    /// The numbers from `picks` whose rows meet the condition.
    func query(of picks: String, where condition: String) -> String {
        "select \(number).\(number) from pg_catalog.unnest(\(picks)) as \(number) (\(number)), "
            + "lateral \(item("rows_", at: "\(number).\(number)")) where \(condition)"
    }
}
