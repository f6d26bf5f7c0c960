import Hub
package import Matching
package import Postgres
package import Wire

extension PushStore {
    /// Returns the audience of changes: the users whom the operator's statement names, who have a phone or an activity registered, and
    /// to whom a SELECT with the claims of the newest registration would show the row. Leaving out the sender, or users who have muted
    /// the conversation, is up to the statement or the caller.
    ///
    /// A statement that fails is a warning in the log, once a minute, and never an error.
    /// - Parameter statement: SQL of the operator's (`alerts.audience`) with the parameter `$1::jsonb`, an array of
    ///   `{"row", "schema", "table", "record"}`. It returns the columns `row`, `user_id` and any that templates use, of which `muted` and
    ///   `badge` have a meaning here. It cannot write, and has two seconds.
    /// - Throws: `PostgresError` if the database does not answer: ask again.
    package func audience(for changes: [RowChange], statement: String) throws -> AlertAudience {
        let statement = AudienceStatement(statement, asksEverybody: query.hasTokens)
        return try query.audience(for: changes, statement, on: connection, &warnings)
    }

    /// The statement for the sample chat: every member of the conversation but the sender.
    package static var audienceOfSampleChat: String { SampleChatSQL.audienceOfSampleChat.text }
}

/// A user to alert of a change while away, who may see its row.
package struct AudienceMember: Sendable, Equatable {
    /// The change's index in the question.
    package let change: Int
    /// The claim `sub`.
    package let user: Name
    /// All columns but `row` that the audience statement returned for this user, as a JSON object.
    package let variables: [UInt8]
    /// True if the user has muted the conversation.
    package let isMuted: Bool
    /// The number of unread messages, if the statement returns it.
    package let badge: Int?
    /// True if a token for alerts is registered; otherwise there are only activities.
    package let hasDevice: Bool
}

/// The audience of some changes.
package struct AlertAudience: Sendable, Equatable {
    package internal(set) var members: [AudienceMember] = []
    /// Indices of changes whose audience could not be found, or not all of it, for a temporary reason, such as a lock or a deadline:
    /// ask again later, but not for ever. For these, too, `members` has the users that could be found.
    package internal(set) var unanswered: [Int] = []
    /// The number of changes for which the statement always fails, so that they have no audience; the log gives the reason.
    package internal(set) var failed = 0

    init() {}
}

/// The operator's statement that returns the audience of changes (`alerts.audience`).
package struct AudienceStatement {
    private let sql: String
    private let columnQuery: String
    private static let trailing: Set<Character> = [" ", "\n", "\r", "\r\n", "\t", ";"]

    /// A statement that names no users, used if none is configured.
    package static let ofNobody = "select 0 as row, null::text as user_id from jsonb_array_elements($1) where false"
    let isOfNobody: Bool

    /// - Parameters:
    ///   - statement: a query with the parameter `$1 jsonb`.
    ///   - asksEverybody: whether users without a known phone count, too.
    package init(_ statement: String, asksEverybody: Bool = false) {
        let asking = asksEverybody ? AppTokenSQL.askEverybody.text : AudienceSQL.askAudience.text
        sql = SQLTemplate(asking).filled(["statement": Self.bare(statement)])
        columnQuery = SQLTemplate(AudienceSQL.audienceColumns.text).filled(["statement": Self.bare(statement)])
        isOfNobody = statement.utf8.elementsEqual(Self.ofNobody.utf8)
    }

    /// Strips a statement for use in parentheses, where no semicolon is allowed.
    static func bare(_ statement: String) -> String {
        let end = statement.lastIndex { !trailing.contains($0) }
        return end.map { String(statement[...$0]) } ?? ""
    }

    /// Runs the statement in a transaction of its own, in which it cannot write.
    ///
    /// - Throws: `PostgresError`; unless the connection is broken, it is as before.
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

    /// For `roost doctor`: returns the names of the statement's columns, which are the variables of templates.
    package func columns(on connection: PostgresConnection) throws -> Set<String> {
        let rows = try run(columnQuery, "[]", on: connection)
        return Set((0..<rows.width).compactMap { rows.name(ofColumn: $0) })
    }

    /// For `roost doctor`: plans the statement without running it.
    package func plan(on connection: PostgresConnection) throws { _ = try connection.query("explain " + sql, ["[]"]) }
}
