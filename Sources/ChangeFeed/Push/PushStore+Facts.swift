import Hub
import Logging
import Postgres

/// What `live_activity.facts` says of a conversation.
package enum FactsAnswer: Sendable, Equatable {
    /// As a JSON object.
    case row([UInt8])
    /// The user is not in the conversation, or may not see it.
    case noRow
    /// Nobody could be asked, or the statement failed.
    case unknown
}

extension PushStore {
    /// How the conversation of an activity stands for its user: what the operator's statement (`live_activity.facts`) says,
    /// run as that user. A statement that fails is complained of, and says nothing.
    ///
    /// - Parameter statement: SQL with `$1`, the user, and `$2`, the conversation.
    package func facts(of activity: String, statement: String) throws -> FactsAnswer {
        let bearer = try connection.query(SQL.bearerOfActivity, [activity])
        guard bearer.count == 1, let user = bearer.text(0, 0), let conversation = bearer.text(0, 1),
            let role = bearer.text(0, 2), let claims = bearer.text(0, 3)
        else { return .unknown }
        do {
            try connection.run(SQL.audienceTurn)
            _ = try connection.query(SQL.factsTurn, [role, claims])
            let wrapped = "select to_jsonb(f) from (\n\(AudienceStatement.bare(statement))\n) f limit 1"
            let rows = try connection.query(wrapped, [user, conversation])
            let answer = rows.count > 0 ? rows.bytes(0, 0).map { .row(Array($0)) } ?? .unknown : FactsAnswer.noRow
            try connection.run("commit")
            return answer
        } catch let error as PostgresError where !connection.isBroken {
            try connection.run("rollback")
            complaints.note(
                "live_activity.facts fails, so a Live Activity waits for the next message; correct it, or what the role "
                    + "\(role) may read (\(error.message)).")
            return .unknown
        }
    }

    /// The statement for the sample chat.
    package static var factsOfSampleChat: String { SQL.factsOfSampleChat }
}
