import Hub
import Matching

/// The SQL of the temporary function that asks a table's policies for one role.
///
/// The table's name stands in a policy for the row, so the row goes by that name where the policy is evaluated, and
/// nothing else there may be called like one of its columns.
struct PolicyFunction {
    /// In `pg_temp`.
    let name: String
    /// Creates what lasts as long as the session.
    let creation: String
    /// Creates what has to be created in each transaction that asks; see PolicyStored.sql.
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
        let body = SQLTemplate.filled(
            SQL.policyBody,
            [
                "type": row.type, "role": SQLText.literal(question.role), "table": "\(question.table.oid)",
                "many": many, "one": one,
                "marks": SQLText.literal(description.marks), "whole": "\(description.readsRow)",
            ])
        creation = SQLTemplate.filled(SQL.policyFunction, ["name": name, "body": SQLText.literal(body)])
        preparation =
            isStored
            ? SQLTemplate.filled(
                SQL.policyStored,
                ["name": name, "type": row.type, "query": row.query(of: "picks", where: condition)])
            : nil
    }
}

/// A row of the table, as its policies name it.
private struct PolicyRow {
    let type: String
    private let alias: String
    private let isWhole: Bool
    /// A name that nothing in a policy has.
    private let number: String

    init(schema: String, table: String, description: PolicyDescription) {
        type = SQLText.identifier(schema) + "." + SQLText.identifier(table)
        alias = SQLText.identifier(table)
        isWhole = description.readsRow
        var number = "roost_row"
        while table == number || description.condition?.contains(number) == true { number += "_" }
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
