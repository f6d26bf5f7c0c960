package import Hub
package import Logging
package import Postgres
import Schema
import Wire
import Workers

/// The push data of hubs in Postgres: phones, Live Activities, and the alerts to send, shared by all hubs of one database.
///
/// Confined to the thread that opened it, on which it waits. All methods throw `PostgresError`: if `isBroken` is true afterwards, the
/// store must be reopened; otherwise nothing has happened, and the same may be tried again. Methods that take many values send them in
/// one statement.
package final class PushStore {
    let connection: PostgresConnection
    let node: String
    var query: AudienceQuery
    var warnings: RateLimitedLog

    /// The maximum number of phones of one user, for each kind of token; a further registration replaces the oldest.
    package static let devicesPerUser = 20
    /// The maximum number of activities of one user at a time; no more are accepted.
    package static let activitiesPerUser = 50

    /// - Parameters:
    ///   - node: the hub's name across restarts.
    ///   - waiter: waits for the socket; one that also learns when the thread should end keeps a stop short.
    ///   - tokens: reads the phones that the application itself keeps; nil if it keeps none.
    ///   - limit: for each host to connect.
    /// - Throws: `PostgresError` with a sentence if the server accepts no writes, or if `roost migrate` must be run first.
    package init(
        conninfo: String, node: String, waiter: any SocketWaiter = PlainWaiter(), tokens: AppTokens? = nil,
        logger: Logger, within limit: Duration = .seconds(10)
    ) throws {
        connection = try PostgresConnection(
            ConnectionOptions(conninfo: conninfo), waiter: waiter, logger: logger, within: limit)
        self.node = node
        query = AudienceQuery(conninfo: conninfo, tokens: tokens, logger: logger)
        warnings = RateLimitedLog(logger: logger)
        try connection.runScript(PushHubSQL.pushSession)
        try Primary.demandPrimary(on: connection)
        try RoostSchema.demandCurrent(on: connection)
    }

    package var isBroken: Bool { connection.isBroken }

    /// Reports that this hub sends pushes and is alive: a hub that is silent for 30 s loses its activities and held alerts to other
    /// hubs. Must be called first, and then about every 5 s.
    package func heartbeat() throws {
        _ = try connection.query(PushHubSQL.heartbeat, [node])
    }

    /// Deletes a token, whether of phones or of an activity, which then ends.
    ///
    /// - Parameter moment: unless nil, only registrations before it are deleted, in milliseconds since 1970: APNs' status 410 for a
    ///   token holds as of that moment.
    /// - Returns: the number of deleted registrations.
    package func drop(_ destination: PushDestination, ifRegisteredBefore moment: Int64?) throws -> Int {
        let dropped = try connection.query(
            DeviceSQL.dropDestination, destination.columns + [moment.map { String($0) }])
        return Int(dropped.boundedInteger(0, 0) ?? 0)
    }

    /// Deletes finished alerts and activities.
    ///
    /// - Parameter age: longer than any hub reads back (`retention`), or a message would be alerted again.
    /// - Returns: the number deleted; one call deletes up to `batch` of each, so that it blocks nothing for long.
    package func prune(olderThan age: Duration, batch: Int = 1000) throws -> Int {
        let parameters = [String(age.components.seconds), String(batch)]
        let alerts = try connection.query(AlertSQL.pruneAlerts, parameters).boundedInteger(0, 0) ?? 0
        let activities = try connection.query(ActivitySQL.pruneActivities, parameters).affectedRows
        return Int(alerts) + activities
    }
}

extension PushDestination {
    /// The values as the statements take them.
    var columns: [String?] { [token.text, environmentColumn, bundle.text] }
}
