package import Postgres

/// An error with which the walsender ended the stream: Postgres could not decode what comes next.
///
/// Where the same comes again whenever the slot is read, the rows of all tables stand behind it for ever. So what it is about is passed,
/// and clients are told that changes are missing: the transaction whose changes were being sent, or, where none was, all that the slot
/// holds. Errors about the server and not about a change (a full disk, no memory, a right that is gone, a file that cannot be read) are
/// waited for, and `/readyz` tells of them: there what comes next fails as well.
package struct DecodingRefusal: Error {
    package let error: PostgresError
    /// The place in the WAL at which the transaction whose changes were being sent was committed; nil where it was none.
    package let commit: LSN?
    /// What is stored: all that was sent before.
    package let position: CapturePosition

    package init(error: PostgresError, commit: LSN?, position: CapturePosition) {
        self.error = error
        self.commit = commit
        self.position = position
    }

    /// It comes again whenever the slot is read, so that it need not come again to be believed. Changes are decoded with the catalog
    /// of their time, when there may have been no publication; and a row whose text is over 1 GB cannot be decoded at all (MaxAllocSize
    /// in Postgres' source, utils/memutils.h).
    package var isForGood: Bool {
        switch error.sqlState {
        case SQLState.undefinedObject: isAboutPublication
        case SQLState.programLimitExceeded: true
        case SQLState.internalError: error.message.contains("invalid memory alloc request size")
        default: false
        }
    }

    /// It may lie in what is decoded, and not in the server's state.
    package var mayBeOfChange: Bool {
        guard let state = error.sqlState else { return false }
        return !Self.classesOfServer.contains(String(state.prefix(2))) && !Self.statesOfServer.contains(state)
    }

    /// Which transaction can be passed alone.
    package var passable: LSN? { isAboutPublication ? nil : commit }

    private var isAboutPublication: Bool {
        error.sqlState == SQLState.undefinedObject && error.message.contains("publication")
    }

    /// Connections, transactions, authorization, conflicts, resources, prerequisites, operators, and the system itself.
    private static let classesOfServer = ["08", "25", "28", "40", "53", "55", "57", "58", "F0"]
    /// A right that is missing, and files that are damaged.
    private static let statesOfServer = ["42501", "XX001", "XX002"]
}
