import Wire

/// How typing is understood.
package struct TypingRules: Sendable {
    /// Off: a broadcast of this event is like any other.
    package var isOn = true
    /// Milliseconds after which somebody who says nothing more has stopped.
    package var silence: Int64 = 3000
    /// Milliseconds between two starts of one user that others are told of.
    package var rhythm: Int64 = 1000
    /// Users that a channel is told of at once, and starts that it is told of in a second.
    package var shown = 20
    /// Milliseconds for which a channel remembers that there was typing: who joins then is told who types, if it is nobody.
    package var memory: Int64 = 120_000
    /// Inserts that end the typing of their author.
    package var endings: [Ending] = Ending.standard

    package init() {}

    /// The column that names the author of a table's rows.
    package struct Ending: Sendable, Equatable {
        package let schema: String
        package let table: String
        package let column: String

        package init(schema: String, table: String, column: String) {
            self.schema = schema
            self.table = table
            self.column = column
        }

        /// - Parameter text: `SCHEMA.TABLE.COLUMN`, or `TABLE.COLUMN` in `public`.
        package init?(_ text: String) {
            let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
            guard (2...3).contains(parts.count), parts.allSatisfy({ !$0.isEmpty }) else { return nil }
            self.init(
                schema: parts.count == 3 ? parts[0] : "public", table: parts[parts.count - 2],
                column: parts[parts.count - 1])
        }

        package static let standard = ["sender_id", "user_id", "author_id"].map {
            Ending(schema: "public", table: "messages", column: $0)
        }
    }

    /// Who wrote the row of an insert, if it is one that ends typing.
    ///
    /// - Parameter change: `{"schema":…,"table":…,"record":{…}}`
    func author(of change: JSON) -> String? {
        guard let record = change["record"], let table = change["table"]?.string else { return nil }
        let schema = change["schema"]?.string
        for ending in endings where ending.table == table && ending.schema == schema {
            guard let author = record[ending.column], !author.isNull else { continue }
            return author.string ?? author.description
        }
        return nil
    }
}
