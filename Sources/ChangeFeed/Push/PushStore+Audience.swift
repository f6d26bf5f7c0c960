import Hub
package import Matching
import Postgres

extension PushStore {
    /// Who is to hear of changes: whom the operator's statement names, who has a phone or an activity registered, and to
    /// whom a SELECT with the claims of the newest registration would show the row. The sender is the statement's, or the
    /// caller's, to leave out, and so is whoever has muted the conversation.
    ///
    /// A statement that fails is a complaint in the log, once a minute, and never an error.
    /// - Parameter statement: SQL of the operator's (`alerts.audience`) with the parameter `$1::jsonb`, an array of
    ///   `{"row", "schema", "table", "record"}`. It returns the columns `row`, `user_id` and whatever templates use, of
    ///   which `muted` and `badge` mean something here. It cannot write, and has two seconds.
    /// - Throws: `PostgresError` where the database, or what the policies read, does not answer: ask again.
    package func audience(for changes: [RowChange], statement: String) throws -> AlertAudience {
        try asker.audience(for: changes, AudienceStatement(statement), on: connection, &complaints)
    }

    /// The statement for the sample chat: everybody in the conversation but the sender.
    package static var audienceOfSampleChat: String { SQL.audienceOfSampleChat }
}
