package import Hub
import Postgres
package import Wire

extension PushStore {
    /// Drops alerts of messages that users have read, whichever hub they wait at.
    ///
    /// - Returns: the number of dropped alerts.
    package func withdraw(_ positions: [ReadPosition]) throws -> Int {
        let storable = positions.filter(\.isStorable)
        guard !storable.isEmpty else { return 0 }
        do {
            return try withdrawAll(storable)
        } catch let error as PostgresError where !isBroken && error.isAboutPositions {
            // A text that looks like a time but is not one must not block the others.
            var count = 0
            for position in storable {
                do { count += try withdrawAll([position]) } catch let error as PostgresError
                    where !isBroken && error.isAboutPositions
                {
                    warnings.logWarning(
                        "Some alerts are sent though they were read, as a read position cannot be compared: \(error.message)"
                    )
                }
            }
            return count
        }
    }

    private func withdrawAll(_ positions: [ReadPosition]) throws -> Int {
        var columns = [TextArray](repeating: TextArray(), count: 4)
        for position in positions {
            columns[0].append(position.user.utf8)
            columns[1].append(position.conversation.utf8)
            columns[2].append(position.position.utf8)
            columns[3].append(position.place)
        }
        return Int(
            try connection.query(AlertSQL.withdrawAlerts, [node] + columns.map(\.literal)).boundedInteger(0, 0) ?? 0)
    }

    /// Asks the operator's statement for the numbers on the icons of those of some users who have phones. A statement that fails is
    /// logged, and counts as no answer.
    package func badges(of users: [Name], _ statement: BadgeStatement) throws -> [Name: Int] {
        var asked = TextArray()
        for user in users where !user.utf8.contains(0) { asked.append(user.utf8) }
        let found = try connection.query(BadgeSQL.usersWithPhones, [asked.literal])
        guard found.count > 0 else { return [:] }
        var reachable = TextArray()
        for row in 0..<found.count { reachable.append(found.text(row, 0)?.utf8) }
        do {
            let rows = try statement.run(reachable.literal, on: connection)
            var badges: [Name: Int] = [:]
            for row in 0..<rows.count {
                if let user = rows.name(row, 0) {
                    badges[user] = Int(min(max(0, rows.boundedInteger(row, 1) ?? 0), 1_000_000))
                }
            }
            return badges
        } catch let error as PostgresError where !isBroken {
            warnings.logWarning(
                "alerts.badge fails, so icons do not follow what is read elsewhere; correct it, or what it rests on "
                    + "(\(error.message)).")
            return [:]
        }
    }

    /// Claims those of some numbers that this hub should push to phones.
    ///
    /// - Parameter pause: between two pushes to a user, in milliseconds.
    /// - Returns: the phones, and the users for whom it is too soon, with the time when it is due, in milliseconds since 1970.
    package func claim(_ badges: [Name: Int], pause: Int64) throws -> (phones: [BadgePhone], later: [Name: Int64]) {
        guard !badges.isEmpty else { return ([], [:]) }
        var (users, numbers) = (TextArray(), TextArray())
        for (user, badge) in badges {
            users.append(user.utf8)
            numbers.append(Int64(badge))
        }
        let rows = try connection.query(
            BadgeSQL.claimBadges, [users.literal, numbers.literal, String(pause)])
        var (phones, later): ([BadgePhone], [Name: Int64]) = ([], [:])
        for row in 0..<rows.count {
            guard let user = rows.name(row, 0) else { continue }
            if let time = rows.boundedInteger(row, 2) {
                later[user] = time
            } else if let destination = PushDestination(rows, row, from: 3) {
                phones.append(
                    BadgePhone(
                        user: user, badge: Int(rows.boundedInteger(row, 1) ?? 0), destination: destination,
                        session: rows.name(row, 6), registeredAt: rows.boundedInteger(row, 7) ?? 0))
            }
        }
        return (phones, later)
    }

    /// Forgets numbers of users whose phones have been sent others by alerts.
    package func forgetBadges(of users: Set<Name>) throws {
        var array = TextArray()
        for user in users where !user.utf8.contains(0) { array.append(user.utf8) }
        _ = try connection.query(BadgeSQL.forgetBadges, [array.literal])
    }

    /// `alerts.badge` for the sample chat.
    package static var badgeOfSampleChat: String { SampleChatSQL.badgeOfSampleChat.text }
}

/// The position up to which a user has read a conversation.
package struct ReadPosition: Sendable, Equatable {
    package let user: Name
    package let conversation: Name
    /// The value in the row: a time, a number, or an id.
    package let position: Name
    /// `RowChange.id` of the change that contains it.
    package let place: Int64

    package init(user: Name, conversation: Name, position: Name, place: Int64) {
        self.user = user
        self.conversation = conversation
        self.position = position
        self.place = place
    }

    fileprivate var isStorable: Bool {
        [user, conversation, position].allSatisfy { !$0.utf8.contains(0) && $0.utf8.count <= 1000 }
    }
}

/// A phone whose icon should show another number.
package struct BadgePhone: Sendable, Equatable {
    package let user: Name
    package let badge: Int
    package let destination: PushDestination
    /// The claim `session_id` of the token that registered it.
    package let session: Name?
    /// Milliseconds since 1970, by the database's clock.
    package let registeredAt: Int64
}

/// The operator's statement that returns the numbers on users' icons (`alerts.badge`).
package struct BadgeStatement {
    private let sql: String

    /// - Parameter statement: a query with the parameter `$1 text[]` that returns `user_id` and `badge`.
    package init(_ statement: String) {
        sql = SQLTemplate(BadgeSQL.askBadges.text).filled(["statement": AudienceStatement.bare(statement)])
    }

    /// Runs the statement in a transaction of its own, in which it cannot write.
    func run(_ users: String, on connection: PostgresConnection) throws -> QueryResult {
        do {
            try connection.runScript(AudienceSQL.beginReading)
            let rows = try connection.query(sql, [users])
            try connection.runScript("commit")
            return rows
        } catch let error as PostgresError where !connection.isBroken {
            try connection.runScript("rollback")
            throw error
        }
    }
}

extension PostgresError {
    /// A data exception (class 22).
    fileprivate var isAboutPositions: Bool { kind == .server && sqlState?.hasPrefix("22") ?? false }
}
