/// The reason why a connection or a statement failed.
package struct PostgresError: Error, Sendable, CustomStringConvertible {
    package enum Kind: Sendable {
        /// No connection could be made, or it is gone.
        case connection
        /// A statement's deadline passed; the connection is unusable, because the result may still arrive.
        case timeout
        /// The server refused the statement; the connection is intact.
        case server
    }

    package let kind: Kind
    /// The five characters of Postgres' appendix A; nil if the error is not the server's.
    package let sqlState: String?
    package let message: String

    package init(_ kind: Kind, sqlState: String? = nil, _ message: String) {
        self.kind = kind
        self.sqlState = sqlState
        self.message = message
    }

    package var description: String { message }

    /// The sentence for a user whose command got no connection. A server that answers but refuses (libpq quotes its FATAL,
    /// or lacks a password to answer with) must not be reported as unreachable.
    package var connectionSentence: String {
        guard message.contains("failed: FATAL:") || message.contains("fe_sendauth") else {
            return "Postgres cannot be reached (\(message)); check ROOST_DATABASE_URL."
        }
        let reason = message.replacing("failed: FATAL:  ", with: "failed: ")
        return "Postgres refuses the connection (\(reason)); \(remedyOfRefusal)."
    }

    private var remedyOfRefusal: String {
        func says(_ words: String...) -> Bool { words.contains { message.contains($0) } }
        if says("starting up", "shutting down", "recovery mode") { return "try again in a moment" }
        if says("too many", "connection slots") { return "end sessions that nobody needs, or raise max_connections" }
        return "check the user, the password and the database in ROOST_DATABASE_URL"
    }
}

/// The SQLSTATEs that the feed distinguishes.
package enum SQLState {
    package static let undefinedTable = "42P01"
    package static let undefinedFunction = "42883"
    package static let invalidSchema = "3F000"
    package static let insufficientPrivilege = "42501"
    package static let checkViolation = "23514"
    package static let invalidObjectDefinition = "42P17"
    package static let lockNotAvailable = "55P03"
    package static let queryCanceled = "57014"
    package static let deadlock = "40P01"
    package static let duplicateObject = "42710"
    package static let invalidName = "42602"
    package static let undefinedObject = "42704"
    package static let objectInUse = "55006"
    package static let programLimitExceeded = "54000"
    package static let internalError = "XX000"
}

extension String {
    /// The string on one line, without the line break and spaces that end libpq's messages.
    var trimmed: String {
        split(whereSeparator: \.isNewline).map { line in
            String(line.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
        }.joined(separator: "; ")
    }
}
