/// Why a connection or a statement failed.
package struct PostgresError: Error, Sendable, CustomStringConvertible {
    package enum Kind: Sendable {
        /// No connection could be made, or it is gone.
        case connection
        /// The deadline of a statement passed; the connection is unusable, as its answer may still come.
        case timeout
        /// The server refused the statement; the connection is fine.
        case server
    }

    package let kind: Kind
    /// The five characters of Postgres' appendix A; nil where the server did not speak.
    package let sqlState: String?
    package let message: String

    package init(_ kind: Kind, sqlState: String? = nil, _ message: String) {
        self.kind = kind
        self.sqlState = sqlState
        self.message = message
    }

    package var description: String { message }
}

/// The SQLSTATEs that the feed tells apart.
enum SQLState {
    static let undefinedTable = "42P01"
    static let undefinedFunction = "42883"
    static let invalidSchema = "3F000"
    static let insufficientPrivilege = "42501"
    static let lockNotAvailable = "55P03"
    static let queryCanceled = "57014"
    static let deadlock = "40P01"
    static let duplicateObject = "42710"
    static let invalidName = "42602"
}
