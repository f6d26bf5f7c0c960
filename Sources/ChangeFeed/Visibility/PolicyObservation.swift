import Hub
import Logging
import Matching
package import Postgres
package import Wire

/// Finds the tables that a table's policies read by evaluating them: what functions read is not declared anywhere, but
/// shows in the locks of an evaluation.
///
/// The result covers only what the users and rows of the sample lead to. Code that relies on it checks again at each later
/// evaluation (`PolicyAnswer.tablesRead`).
package struct PolicyObservation {
    package enum Outcome: Equatable {
        /// Tables by their oids, a partition as its root.
        case seen(Set<UInt32>)
        /// A reason, a clause without a full stop.
        case unknown(String)
    }

    /// Roles that clients' tokens name in most applications; policies may differ for each.
    private static let roles: [Name] = ["authenticated", "anon"]

    private let connection: PostgresConnection
    private let conninfo: String

    /// - Parameter connection: for reading the catalog; policies are evaluated on another.
    package init(connection: PostgresConnection, conninfo: String) {
        self.connection = connection
        self.conninfo = conninfo
    }

    /// Evaluates the policies of a watched table on rows for users.
    ///
    /// - Parameters:
    ///   - oid: the table's oid.
    ///   - records: rows as the outbox has them.
    ///   - users: values of the claim `sub`.
    /// - Throws: `PostgresError` if the database does not answer.
    package func tablesRead(of oid: UInt32, records: [[UInt8]], users: [Name]) throws -> Outcome {
        guard let table = try CatalogReader.tables(from: connection).first(where: { $0.oid == oid }) else {
            return .unknown("the table is not watched")
        }
        let silent = Logger(label: "roost.admin") { _ in SwiftLogNoOpLogHandler() }
        var engine = PolicyEngine(conninfo: conninfo, logger: silent)
        let questions = Self.roles.map { role in
            PolicyQuestion(
                table: table, command: .select, role: role, rows: records.map(JudgedRecord.knowingNulls),
                subjects: users.map { user in
                    PolicyQuestion.Subject(claims: Self.makeClaims(user, role), rows: Array(records.indices))
                }, wantsTablesRead: true)
        }
        let answers = try engine.answers(to: questions, version: "").filter { !$0.isDenied && !$0.isUnrestricted }
        guard answers.allSatisfy(\.locked.isEmpty) else {
            throw PostgresError(
                .timeout, sqlState: SQLState.lockNotAvailable, "A policy waits for a lock on a table that it reads.")
        }
        guard !answers.isEmpty else {
            return .unknown("there is nobody to ask as: neither authenticated nor anon may read it under its policies")
        }
        // A role for which they always fail sees nothing, and nothing is kept for it.
        let sound = answers.filter { $0.failed.count < users.count }.compactMap(\.tablesRead)
        guard !sound.isEmpty else { return .unknown("they failed for all users that were tried") }
        return .seen(sound.reduce(into: []) { $0.formUnion($1) })
    }

    private static func makeClaims(_ user: Name, _ role: Name) -> Claims {
        let json = #"{"sub":"# + JSONString.text(user.text) + #","role":"# + JSONString.text(role.text) + "}"
        return Claims(role: role, subject: user, expiresAt: .max, json: Array(json.utf8))
    }
}

extension JSONString {
    fileprivate static func text(_ string: String) -> String { String(decoding: encode(string), as: UTF8.self) }
}
