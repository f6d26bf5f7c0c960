import Hub
import Logging

extension PushStore {
    /// How the conversation of an activity stands for its user: what the operator's statement (`live_activity.facts`) says,
    /// run as that user. A statement that fails is complained of, and says nothing.
    ///
    /// - Parameter statement: SQL with `$1`, the user, and `$2`, the conversation.
    /// - Returns: the first row as a JSON object; nil where there is none.
    package func facts(of activity: String, statement: String) throws -> [UInt8]? {
        let bearer = try connection.query(SQL.bearerOfActivity, [activity])
        guard bearer.count == 1, let user = bearer.text(0, 0), let conversation = bearer.text(0, 1),
            let role = bearer.text(0, 2), let claims = bearer.text(0, 3)
        else { return nil }
        do {
            try connection.run(SQL.audienceTurn)
            _ = try connection.query(SQL.factsTurn, [role, claims])
            let wrapped = "select to_jsonb(f) from (\n\(AudienceStatement.bare(statement))\n) f limit 1"
            let rows = try connection.query(wrapped, [user, conversation])
            let facts = rows.count > 0 ? rows.bytes(0, 0).map { Array($0) } : nil
            try connection.run("commit")
            return facts
        } catch let error as PostgresError where !connection.isBroken {
            try connection.run("rollback")
            complaints.note(
                "live_activity.facts fails, so a Live Activity waits for the next message; correct it, or what the role "
                    + "\(role) may read (\(error.message)).")
            return nil
        }
    }

    /// The statement for the sample chat.
    package static var factsOfSampleChat: String { SQL.factsOfSampleChat }
}
