package import Hub
import Postgres

extension PushStore {
    /// Notes a phone's token. What the same phone (`session`) had before it, or `old`, is forgotten; a token that another
    /// user registered is this user's from here on.
    package func register(
        _ destination: PushDestination, _ kind: DeviceRegistration.Kind, by bearer: PushBearer,
        replacing old: PushToken? = nil
    ) throws -> DeviceRegistration {
        try Self.demandStorable(destination.bundle, kind.attributesType)
        let claims = String(decoding: bearer.claims, as: UTF8.self)
        let row = try connection.query(
            SQL.registerDevice,
            destination.columns
                + [
                    kind.name, kind.attributesType, bearer.user, bearer.session, bearer.role, claims, old?.hex,
                    String(Self.devicesPerUser),
                ])
        return DeviceRegistration(
            user: bearer.user, destination: destination, kind: kind, registeredAt: row.integer(0, 0) ?? 0)
    }

    /// Forgets a token of a user, for alerts and for starts.
    ///
    /// - Returns: whether the user had it.
    package func unregister(_ token: PushToken, of user: String) throws -> Bool {
        try Self.demandStorable(user)
        return try connection.query(SQL.unregisterDevice, [token.hex, user]).affectedRows > 0
    }

    /// The newest first.
    package func devices(of user: String) throws -> [DeviceRegistration] {
        try Self.demandStorable(user)
        let rows = try connection.query(SQL.devicesOfUser, [user])
        return (0..<rows.count).compactMap { row in
            guard let destination = PushDestination(rows, row, from: 0) else { return nil }
            let kind = rows.text(row, 3).map { DeviceRegistration.Kind.start(attributesType: $0) } ?? .alert
            return DeviceRegistration(
                user: user, destination: destination, kind: kind, registeredAt: rows.integer(row, 4) ?? 0)
        }
    }

    /// libpq would cut them off at a NUL, and they would be somebody else's.
    static func demandStorable(_ texts: String?...) throws {
        guard texts.contains(where: { $0?.utf8.contains(0) ?? false }) else { return }
        throw PostgresError(
            .server, sqlState: SQLState.untranslatableCharacter,
            "A text holds U+0000, which Postgres does not take; leave it out.")
    }
}

extension SQLState {
    static let untranslatableCharacter = "22P05"
}

extension DeviceRegistration.Kind {
    fileprivate var name: String { if case .start = self { "start" } else { "alert" } }
    fileprivate var attributesType: String? { if case .start(let type) = self { type } else { nil } }
}

extension PushDestination {
    /// From the columns token, environment and bundle; nil for what roost did not write.
    init?(_ rows: QueryResult, _ row: Int, from column: Int) {
        guard let token = rows.text(row, column).flatMap({ PushToken($0) }),
            let environment = rows.text(row, column + 1).flatMap({ PushEnvironment(rawValue: $0) }),
            let bundle = rows.text(row, column + 2)
        else { return nil }
        self.init(token: token, environment: environment, bundle: bundle)
    }
}
