import Hub
package import Matching
package import Postgres
package import Wire

extension PushStore {
    /// Who is to hear of changes: whom the operator's statement names, who has a phone or an activity registered, and to
    /// whom a SELECT with the claims of the newest registration would show the row. The sender is the statement's, or the
    /// caller's, to leave out, and so is whoever has muted the conversation.
    ///
    /// A statement that fails is a complaint in the log, once a minute, and never an error.
    /// - Parameter statement: SQL of the operator's (`alerts.audience`) with the parameter `$1::jsonb`, an array of
    ///   `{"row", "schema", "table", "record"}`. It returns the columns `row`, `user_id` and whatever templates use, of
    ///   which `muted` and `badge` mean something here. It cannot write, and has two seconds.
    /// - Throws: `PostgresError` where the database does not answer: ask again.
    package func audience(for changes: [RowChange], statement: String) throws -> AlertAudience {
        let statement = AudienceStatement(statement, asksEverybody: query.hasTokens)
        return try query.audience(for: changes, statement, on: connection, &warnings)
    }

    /// The statement for the sample chat: everybody in the conversation but the sender.
    package static var audienceOfSampleChat: String { SampleChatSQL.audienceOfSampleChat.text }
}

/// Somebody who is to hear of a change while away, and may see its row.
package struct AudienceMember: Sendable, Equatable {
    /// The change's index among those that were asked about.
    package let change: Int
    /// The claim `sub`.
    package let user: Name
    /// All columns that the audience statement returned for this user but `row`, as a JSON object.
    package let variables: [UInt8]
    /// The user has muted the conversation.
    package let isMuted: Bool
    /// How many messages are unread, where the statement says so.
    package let badge: Int?
    /// A token for alerts is registered; otherwise there are only activities.
    package let hasDevice: Bool
}

/// The answer to who is to hear of some changes.
package struct AlertAudience: Sendable, Equatable {
    package internal(set) var members: [AudienceMember] = []
    /// Indices of changes whose audience could not be found out, or not all of it, for a reason that passes, such as a lock or a
    /// deadline: ask again later, but not for ever. Of them, too, `members` has whom it could be found out of.
    package internal(set) var unanswered: [Int] = []
    /// How many changes the statement fails for whatever the moment, so that they have no audience; the log says why.
    package internal(set) var failed = 0

    init() {}
}

/// The operator's statement that says who is to hear of changes (`alerts.audience`).
package struct AudienceStatement {
    private let sql: String
    private let columnQuery: String
    private static let trailing: Set<Character> = [" ", "\n", "\r", "\r\n", "\t", ";"]

    /// Names nobody: in place of a statement where none is configured.
    package static let ofNobody = "select 0 as row, null::text as user_id from jsonb_array_elements($1) where false"
    let isOfNobody: Bool

    /// - Parameters:
    ///   - statement: a query with the parameter `$1 jsonb`.
    ///   - asksEverybody: users count of whom no phone is known, too.
    package init(_ statement: String, asksEverybody: Bool = false) {
        let asking = asksEverybody ? AppTokenSQL.askEverybody.text : AudienceSQL.askAudience.text
        sql = SQLTemplate(asking).filled(["statement": Self.bare(statement)])
        columnQuery = SQLTemplate(AudienceSQL.audienceColumns.text).filled(["statement": Self.bare(statement)])
        isOfNobody = statement.utf8.elementsEqual(Self.ofNobody.utf8)
    }

    /// As it can stand in brackets, where it takes no semicolon.
    static func bare(_ statement: String) -> String {
        let end = statement.lastIndex { !trailing.contains($0) }
        return end.map { String(statement[...$0]) } ?? ""
    }

    /// Runs it in a transaction of its own, in which it cannot write.
    ///
    /// - Throws: `PostgresError`; where the connection is not broken, nothing has happened to it.
    package func run(_ parameter: String, on connection: PostgresConnection) throws -> QueryResult {
        try run(sql, parameter, on: connection)
    }

    private func run(_ sql: String, _ parameter: String, on connection: PostgresConnection) throws -> QueryResult {
        do {
            try connection.runScript(AudienceSQL.beginReading)
            let rows = try connection.query(sql, [parameter])
            try connection.runScript("commit")
            return rows
        } catch let error as PostgresError where !connection.isBroken {
            try connection.runScript("rollback")
            throw error
        }
    }

    /// For `roost doctor`: the names of its columns, which are the variables of templates.
    package func columns(on connection: PostgresConnection) throws -> Set<String> {
        let rows = try run(columnQuery, "[]", on: connection)
        return Set((0..<rows.width).compactMap { rows.name(ofColumn: $0) })
    }

    /// For `roost doctor`: the plan of it, without running it.
    package func plan(on connection: PostgresConnection) throws { _ = try connection.query("explain " + sql, ["[]"]) }
}
