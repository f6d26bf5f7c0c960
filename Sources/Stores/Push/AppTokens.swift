package import Hub
package import Postgres
package import Wire
import Workers

/// Reads phones from the application's own table, by a statement of the operator's (`alerts.tokens`), and keeps them with those that
/// users registered.
///
/// The statement has the parameter `$1::text[]`, users, and returns the columns `user_id` and `token`, and `environment`, `bundle` and
/// `kind` if the application knows them; for a browser (`web`) the endpoint is the token, and `p256dh` and `auth` are its keys. The
/// statement cannot write, and has two seconds.
package struct AppTokens: Sendable {
    /// The result of a question.
    struct Answer {
        /// True if phones were added or removed.
        var isChanged = false
        /// Users for whom the statement gave no answer, for a temporary reason.
        var unanswered: Set<Name> = []
    }

    private let sql: String
    private let examination: String
    private let environment: PushEnvironment
    private let bundle: Name

    /// The maximum number of users in one question.
    private static let mostUsers = 1000
    /// The time for one call: users not asked about by then are asked about another time.
    private static let patience = Duration.seconds(5)

    /// - Parameters:
    ///   - environment: of tokens for which the statement returns none.
    ///   - bundle: the same.
    package init(_ statement: String, environment: PushEnvironment, bundle: Name) {
        let bare = ["statement": AudienceStatement.bare(statement)]
        sql = SQLTemplate(AppTokenSQL.askTokens.text).filled(bare)
        examination = SQLTemplate(AppTokenSQL.examineTokens.text).filled(bare)
        self.environment = environment
        self.bundle = bundle
    }

    /// Asks for the phones of some users, and stores the changes.
    ///
    /// A statement that fails is a warning in the log, once a minute; the known phones stay.
    /// - Throws: `PostgresError` if the database does not answer.
    func refresh(
        _ users: Set<Name>, on connection: PostgresConnection, _ warnings: inout RateLimitedLog
    ) throws -> Answer {
        let end = ContinuousClock.now + Self.patience
        var answer = Answer()
        let all = users.filter { !$0.utf8.contains(0) }.sorted()
        var parts = stride(from: 0, to: all.count, by: Self.mostUsers).map { start in
            all[start..<min(all.count, start + Self.mostUsers)]
        }
        while let part = parts.popLast() {
            guard ContinuousClock.now < end else {
                answer.unanswered.formUnion(part)
                continue
            }
            do {
                if let said = try said(of: part, on: connection, &warnings) {
                    try note(said, of: part, on: connection, &answer, &warnings)
                }
            } catch let error as PostgresError where !connection.isBroken {
                if error.isOfTheMoment {
                    warnings.logWarning(
                        "alerts.tokens did not answer, so some alerts come later; an index for what it reads may help "
                            + "(\(error.message)).")
                    answer.unanswered.formUnion(part)
                    continue
                }
                // One user that the statement fails for must not block the others.
                guard part.count > 1, try rehearsal(on: connection) == nil else {
                    warnings.logWarning(
                        "alerts.tokens fails, so phones that the application keeps are not alerted; correct it, or what "
                            + "it rests on (\(error.message)).")
                    if part.count > 1 { return answer }
                    continue
                }
                let middle = part.startIndex + part.count / 2
                parts += [part[middle...], part[..<middle]]
            }
        }
        return answer
    }

    /// Returns the statement's error for an empty list of users; nil if it does not fail.
    private func rehearsal(on connection: PostgresConnection) throws -> PostgresError? {
        do {
            _ = try rows([Self.list([]), "1"], of: sql, on: connection)
            return nil
        } catch let error as PostgresError where !connection.isBroken {
            return error
        }
    }

    /// A phone in the application's data.
    private struct Said: Hashable {
        let user: Name
        let destination: PushDestination
        let keys: WebPushKeys?
    }

    private func rows(
        _ parameters: [String], of sql: String, on connection: PostgresConnection
    ) throws -> QueryResult {
        do {
            try connection.runScript(AudienceSQL.beginReading)
            let rows = try connection.query(sql, parameters)
            try connection.runScript("commit")
            return rows
        } catch let error as PostgresError where !connection.isBroken {
            try connection.runScript("rollback")
            throw error
        }
    }

    /// - Returns: nil if the statement returns more than it may.
    private func said(
        of users: ArraySlice<Name>, on connection: PostgresConnection, _ warnings: inout RateLimitedLog
    ) throws -> Set<Said>? {
        let most = users.count * PushStore.devicesPerUser
        let rows = try rows([Self.list(users), String(most + 1)], of: sql, on: connection)
        guard rows.count <= most else {
            warnings.logWarning(
                "alerts.tokens returns more than \(most) rows for \(users.count) users, so what it says is not taken; have it "
                    + "return those of the users in $1, \(PushStore.devicesPerUser) for each at most.")
            return nil
        }
        let asked = Set(users)
        var said: Set<Said> = []
        var counts: [Name: Int] = [:]
        var unusable = 0
        for row in 0..<rows.count {
            guard let user = rows.name(row, 0), asked.contains(user), rows.text(row, 1)?.isEmpty == false else {
                continue
            }
            guard let destination = destination(rows, row) else {
                unusable += 1
                continue
            }
            let keys = destination.kind == .web ? Self.keys(rows, row) : nil
            guard destination.kind != .web || keys != nil else {
                unusable += 1
                continue
            }
            counts[user, default: 0] += 1
            if counts[user, default: 0] <= PushStore.devicesPerUser {
                said.insert(Said(user: user, destination: destination, keys: keys))
            }
        }
        if unusable > 0 {
            warnings.logWarning(
                "\(unusable) tokens of alerts.tokens cannot be: kind is apns (or null), fcm or web, a token of Apple's is hexadecimal, "
                    + "environment is sandbox or production, and a browser has an endpoint as token, p256dh and auth.")
        }
        return said
    }

    private func destination(_ rows: QueryResult, _ row: Int) -> PushDestination? {
        guard let kind = PushKind(rawValue: rows.text(row, 4) ?? PushKind.apns.rawValue),
            let token = rows.text(row, 1).flatMap({ PushToken($0, of: kind) })
        else { return nil }
        guard kind == .apns else { return PushDestination(token: token, bundle: rows.name(row, 3) ?? "") }
        var environment = environment
        if let named = rows.text(row, 2), !named.isEmpty {
            guard let known = PushEnvironment(rawValue: named) else { return nil }
            environment = known
        }
        var bundle = bundle
        if let named = rows.name(row, 3), !named.isEmpty {
            guard named.utf8.count <= 255 else { return nil }
            bundle = named
        }
        return PushDestination(token: token, environment: environment, bundle: bundle)
    }

    private static func keys(_ rows: QueryResult, _ row: Int) -> WebPushKeys? {
        guard let publicKey = rows.text(row, 5).flatMap({ Base64URL.decode($0.utf8) }),
            let secret = rows.text(row, 6).flatMap({ Base64URL.decode($0.utf8) })
        else { return nil }
        return WebPushKeys(publicKey: publicKey, secret: secret)
    }

    /// Stores the application's phones of some users, if they differ from the known ones.
    private func note(
        _ said: Set<Said>, of users: ArraySlice<Name>, on connection: PostgresConnection, _ answer: inout Answer,
        _ warnings: inout RateLimitedLog
    ) throws {
        var (said, users) = (said, Array(users))
        var (columns, keys) = Self.columns(said, of: users)
        var compared = try connection.query(AppTokenSQL.compareTokens, columns)
        let owners = (0..<compared.count).compactMap { compared.name($0, 0) }.prefix(Self.mostUsers)
        if !owners.isEmpty {
            // A phone that changed hands: only the application can tell whether the former owner still has it.
            guard let others = try self.said(of: owners, on: connection, &warnings) else { return }
            said.formUnion(others)
            users += owners
            (columns, keys) = Self.columns(said, of: users)
            compared = try connection.query(AppTokenSQL.compareTokens, columns)
        }
        guard compared.flag(0, 1) else { return }
        answer.isChanged = true
        _ = try connection.query(AppTokenSQL.addTokens, columns + [keys])
        _ = try connection.query(AppTokenSQL.removeTokens, columns)
    }

    private static func columns(_ said: Set<Said>, of users: [Name]) -> (columns: [String], keys: String) {
        var columns = [TextArray](repeating: TextArray(), count: 4)
        var keys = TextArray()
        for one in said {
            columns[0].append(one.user.utf8)
            columns[1].append(one.destination.token.text.utf8)
            columns[2].append(one.destination.environmentColumn.utf8)
            columns[3].append(one.destination.bundle.utf8)
            keys.append(one.keys?.column.utf8)
        }
        return ([list(users)] + columns.map(\.literal), keys.literal)
    }

    private static func list(_ users: some Sequence<Name>) -> String {
        var list = TextArray()
        for user in users { list.append(user.utf8) }
        return list.literal
    }

    /// Returns the users who have a phone for alerts, either registered or the application's.
    static func usersWithPhones(
        among users: Set<Name>, on connection: PostgresConnection
    ) throws -> Set<Name> {
        let rows = try connection.query(
            AppTokenSQL.usersWithPhones, [list(users.filter { !$0.utf8.contains(0) })])
        return Set((0..<rows.count).compactMap { rows.name($0, 0) })
    }

    /// For `roost doctor`: runs the statement for no users, and looks for its columns.
    package func examine(on connection: PostgresConnection) throws {
        _ = try rows([Self.list([])], of: examination, on: connection)
    }

    /// For `roost doctor`: plans the statement without running it.
    package func plan(on connection: PostgresConnection) throws {
        _ = try connection.query("explain " + examination, [Self.list([])])
    }
}
