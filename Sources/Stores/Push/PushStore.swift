package import Hub
package import Logging
package import Postgres
import Schema
package import Wire
import Workers

/// What the pushing half of a hub keeps in Postgres: phones, Live Activities, and the alerts that are to be sent, shared
/// by all hubs of one database.
///
/// Confined to the thread that opened it, on which it waits. All methods throw `PostgresError`: where `isBroken` is true
/// afterwards, the store is to be opened anew; otherwise the same may be tried again, and nothing has happened. Where a
/// method takes many values, they go in one statement.
package final class PushStore {
    let connection: PostgresConnection
    let node: String
    var query: AudienceQuery
    var warnings: RateLimitedLog

    /// Phones that one user may have, of each kind of token; whoever registers more loses the oldest.
    package static let devicesPerUser = 20
    /// Activities that one user may have at a time; no more are taken.
    package static let activitiesPerUser = 50

    /// - Parameters:
    ///   - node: the hub's name across restarts.
    ///   - waiter: waits for the socket; one that is also told when the thread is to end keeps a stop short.
    ///   - tokens: how to read phones that the application itself keeps; nil where it keeps none.
    ///   - limit: for each host to connect.
    /// - Throws: `PostgresError` with a sentence where the server takes no writes, or where `roost migrate` is to be run.
    package init(
        conninfo: String, node: String, waiter: any SocketWaiter = PlainWaiter(), tokens: AppTokens? = nil,
        logger: Logger, within limit: Duration = .seconds(10)
    ) throws {
        connection = try PostgresConnection(
            ConnectionOptions(conninfo: conninfo), waiter: waiter, logger: logger, within: limit)
        self.node = node
        query = AudienceQuery(conninfo: conninfo, tokens: tokens, logger: logger)
        warnings = RateLimitedLog(logger: logger)
        try connection.run(PushHubSQL.pushSession)
        try Primary.demand(on: connection)
        try RoostSchema.demandCurrent(on: connection)
    }

    package var isBroken: Bool { connection.isBroken }

    /// Says that this hub sends pushes and is there: whoever says nothing for 30 s loses its activities and held alerts to
    /// other hubs. To be called first, and then about every 5 s.
    package func heartbeat() throws {
        _ = try connection.query(PushHubSQL.heartbeat, [node])
    }

    /// Forgets a token, be it of phones or of an activity, which then ends.
    ///
    /// - Parameter moment: where it is not nil, only what was registered before it, in milliseconds since 1970: what APNs
    ///   says of a token with status 410 holds for that moment.
    /// - Returns: how many registrations that were.
    package func drop(_ destination: PushDestination, ifRegisteredBefore moment: Int64?) throws -> Int {
        let dropped = try connection.query(
            DeviceSQL.dropDestination, destination.columns + [moment.map { String($0) }])
        return Int(dropped.figure(0, 0) ?? 0)
    }

    /// Forgets alerts and activities that are over.
    ///
    /// - Parameter age: longer than any hub reads back (`retention`), or a message would be alerted again.
    /// - Returns: how many; one call forgets up to `batch` of each, so that nobody waits for it.
    package func prune(olderThan age: Duration, batch: Int = 1000) throws -> Int {
        let parameters = [String(age.components.seconds), String(batch)]
        let alerts = try connection.query(AlertSQL.pruneAlerts, parameters).figure(0, 0) ?? 0
        let activities = try connection.query(ActivitySQL.pruneActivities, parameters).affectedRows
        return Int(alerts) + activities
    }
}

extension PushDestination {
    /// As the statements take them.
    var columns: [String?] { [token.text, environmentColumn, bundle.text] }
}
