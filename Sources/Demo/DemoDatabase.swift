import ChangeFeed
import Logging

/// The demo's session with its database, opened when it is needed and again after it broke.
final class DemoDatabase {
    private let conninfo: String
    private let logger: Logger
    private var session: DatabaseSession?

    init(conninfo: String, logger: Logger) {
        self.conninfo = conninfo
        self.logger = logger
    }

    /// One statement, in a transaction of its own under the role and claims, whose one value is JSON.
    func perform(_ sql: String, _ parameters: [String?], role: String, claims: String) throws -> String {
        let session = try open()
        do {
            // The role is one of two constants; the claims are text from outside and go as a parameter.
            try session.run("begin; set local role \(role)")
            _ = try session.rows("select set_config('request.jwt.claims', $1, true)", [claims])
            let json = try session.rows(sql, parameters).first?.first ?? nil
            try session.run("commit")
            return json ?? "null"
        } catch {
            rollBack(session)
            throw error
        }
    }

    private func rollBack(_ session: DatabaseSession) {
        do {
            if !session.isBroken { try session.run("rollback") }
        } catch {
            logger.warning("the demo's session is given up: \(error)")
        }
        if session.isBroken { self.session = nil }
    }

    private func open() throws -> DatabaseSession {
        if let session, !session.isBroken { return session }
        let fresh = try DatabaseSession(conninfo: conninfo)
        session = fresh
        return fresh
    }
}
