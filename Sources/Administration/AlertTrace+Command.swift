package import Stores

extension AlertTrace {
    /// Reads a subject's alerts for a command, the newest first.
    ///
    /// - Throws: `AdminError` with a sentence.
    package static func read(_ subject: Subject, limit: Int, conninfo: String) throws -> [Entry] {
        try runCommand("read the alerts") {
            try read(subject, limit: limit, on: AdminSession.openMigrated(conninfo), within: .seconds(30))
        }
    }
}
