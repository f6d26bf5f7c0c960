import Hub
import Matching

/// Why a role's rows of a table cannot be asked about, or are none of its business, and what to do.
struct PolicyDenial {
    let sentence: String
    static let noSuchRole = "A token names a role that has a NUL in its name, which no role of a database has."

    /// - Returns: nil where nothing is in the way.
    init?(_ question: PolicyQuestion, _ facts: PolicyDescription, serverVersion: Int) {
        let table = SQLText.qualified(question.table.schema, question.table.name)
        let role = SQLText.identifier(question.role)
        let hub = SQLText.identifier(facts.hub)
        func grant(_ sql: String) -> String { "run: grant \(sql)" }
        if facts.schema == nil {
            sentence = "The table \(table) is gone, so nobody sees its rows."
        } else if !facts.roleExists {
            sentence =
                "A token names the role \(role), which the database does not have; create it or correct the token."
        } else if !facts.isAssumable {
            sentence =
                "The hub may not act as \(role), so its users see no rows of \(table); "
                + grant("\(role) to \(hub)")
        } else if !facts.mayUseSchema {
            let schema = SQLText.identifier(question.table.schema)
            sentence =
                "The role \(role) may not use the schema of \(table); if it should, "
                + grant("usage on schema \(schema) to \(role)")
        } else if !facts.mayWrite {
            sentence =
                "The role \(role) may not insert into \(table); if it should, "
                + grant("insert on \(SQLText.name(of: question.table)) to \(role)")
        } else if !facts.isRestricted || facts.permissive == nil {
            return nil
        } else if !facts.mayCreateFunctions {
            sentence =
                "The hub may not create temporary functions, with which it asks the policies of \(table); "
                + "as the owner of the database " + grant("temporary on its database to \(hub)")
        } else if let schemas = facts.unusableSchemas, serverVersion < 140_000 {
            sentence =
                "Before Postgres 14 the policies of \(table) can be asked only by a role that may use the schemas "
                + "they name; " + grant("usage on schema \(schemas) to \(role)")
        } else {
            return nil
        }
    }
}
