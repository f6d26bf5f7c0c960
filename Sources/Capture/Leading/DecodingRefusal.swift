package import Postgres

/// An error with which the walsender ended the stream: Postgres could not decode what comes next.
///
/// If the error comes again whenever the slot is read, it blocks the rows of all tables for ever. So the transaction
/// whose changes were being sent is skipped (everything in the slot, if there was none), and clients are told that
/// changes are missing. Errors about the server and not about a change (a full disk, no memory, a missing privilege, an
/// unreadable file) are waited for and shown by `/readyz`: they would hit the next changes as well.
package struct DecodingRefusal: Error {
    package let error: PostgresError
    /// The commit position of the transaction whose changes were being sent; nil if there was none.
    package let commit: LSN?
    /// The stored position: everything sent before is stored.
    package let position: CapturePosition

    package init(error: PostgresError, commit: LSN?, position: CapturePosition) {
        self.error = error
        self.commit = commit
        self.position = position
    }

    /// Whether the error is certain to come again whenever the slot is read. Changes are decoded with the catalog of
    /// their time, when there may have been no publication; and a row whose text is over 1 GB cannot be decoded at all
    /// (MaxAllocSize in Postgres' source, utils/memutils.h).
    package var isForGood: Bool {
        switch error.sqlState {
        case SQLState.undefinedObject: isAboutPublication
        case SQLState.programLimitExceeded: true
        case SQLState.internalError: error.message.contains("invalid memory alloc request size")
        default: false
        }
    }

    /// Whether the decoded change may be the cause, and not the server's state.
    package var mayBeOfChange: Bool {
        guard let state = error.sqlState else { return false }
        return !Self.classesOfServer.contains(String(state.prefix(2))) && !Self.statesOfServer.contains(state)
    }

    /// The transaction that can be skipped alone.
    package var passable: LSN? { isAboutPublication ? nil : commit }

    private var isAboutPublication: Bool {
        error.sqlState == SQLState.undefinedObject && error.message.contains("publication")
    }

    /// Connections, transactions, authorization, conflicts, resources, prerequisites, operators, and the system itself.
    private static let classesOfServer = ["08", "25", "28", "40", "53", "55", "57", "58", "F0"]
    /// A missing privilege, and damaged files.
    private static let statesOfServer = ["42501", "XX001", "XX002"]
}
