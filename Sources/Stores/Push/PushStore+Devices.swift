package import Hub
import Postgres
package import Wire

extension PushStore {
    /// Stores a phone's token. The previous token of the same phone (`session`), or `old`, is deleted; a token that another user
    /// registered now belongs to this user. The answer has the environment reported by Apple, if there is one.
    package func register(
        _ destination: PushDestination, _ kind: DeviceRegistration.Kind, by bearer: PushBearer,
        replacing old: PushToken? = nil, keys: WebPushKeys? = nil
    ) throws -> DeviceRegistration {
        try Self.demandStorable(destination.bundle, kind.attributesType.map { Name($0) })
        let claims = String(decoding: bearer.claims, as: UTF8.self)
        let row = try connection.query(
            DeviceSQL.registerDevice,
            destination.columns
                + [
                    kind.name, kind.attributesType, bearer.user.text, bearer.session?.text, bearer.role.text, claims,
                    old?.text,
                    String(Self.devicesPerUser), keys?.column,
                ])
        let environment = row.text(0, 1).flatMap { PushEnvironment(rawValue: $0) } ?? destination.environment
        return DeviceRegistration(
            user: bearer.user, destination: destination.moved(to: environment), kind: kind,
            registeredAt: row.boundedInteger(0, 0) ?? 0, keys: keys)
    }

    /// Stores the environment in which Apple knows a token, whether of phones or of an activity.
    ///
    /// - Parameter destination: as read from this store.
    /// - Returns: the number of registrations changed.
    package func keep(_ environment: PushEnvironment, of destination: PushDestination) throws -> Int {
        let kept = try connection.query(
            DeviceSQL.keepEnvironment, destination.columns + [environment.rawValue])
        return Int(kept.boundedInteger(0, 0) ?? 0)
    }

    /// Deletes a token of a user, for alerts and for starts.
    ///
    /// - Returns: whether the user had it.
    package func unregister(_ token: PushToken, of user: Name) throws -> Bool {
        try Self.demandStorable(user)
        return try connection.query(DeviceSQL.unregisterDevice, [token.text, user.text]).affectedRows > 0
    }

    /// Returns the devices, the newest first.
    package func devices(of user: Name) throws -> [DeviceRegistration] {
        try Self.demandStorable(user)
        let rows = try connection.query(DeviceSQL.devicesOfUser, [user.text])
        return (0..<rows.count).compactMap { row in
            guard let destination = PushDestination(rows, row, from: 0) else { return nil }
            let kind = rows.text(row, 3).map { DeviceRegistration.Kind.start(attributesType: $0) } ?? .alert
            return DeviceRegistration(
                user: user, destination: destination, kind: kind, registeredAt: rows.boundedInteger(row, 4) ?? 0)
        }
    }

    /// Refuses names with a NUL: libpq would truncate them, and they would be another user's.
    static func demandStorable(_ names: Name?...) throws {
        guard names.contains(where: { $0?.utf8.contains(0) ?? false }) else { return }
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
    /// Reads the columns token, environment and bundle; nil for a row that roost did not write.
    init?(_ rows: QueryResult, _ row: Int, from column: Int) {
        guard let text = rows.text(row, column), let place = rows.text(row, column + 1),
            let bundle = rows.name(row, column + 2)
        else { return nil }
        let environment = PushEnvironment(rawValue: place)
        guard let kind = environment == nil ? PushKind(rawValue: place) : .apns, let token = PushToken(text, of: kind)
        else { return nil }
        self.init(token: token, environment: environment ?? .production, bundle: bundle)
    }

    /// The column environment, which identifies the token's service.
    var environmentColumn: String { kind == .apns ? environment.rawValue : kind.rawValue }

    /// Returns the values that the column may have for devices of a kind.
    static func environments(of kind: PushKind) -> [String] {
        kind == .apns ? PushEnvironment.allCases.map(\.rawValue) : [kind.rawValue]
    }
}

extension WebPushKeys {
    /// The value of the column keys.
    var column: String { Base64URL.encode(publicKey) + "." + Base64URL.encode(secret) }

    init?(column: String) {
        let parts = column.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let publicKey = Base64URL.decode(parts[0].utf8),
            let secret = Base64URL.decode(parts[1].utf8)
        else { return nil }
        self.init(publicKey: publicKey, secret: secret)
    }
}

/// The user who registers a phone or an activity, by the token that was verified for the request.
///
/// The claims are kept with the registration: the policies are asked with them whether the user may be told of a row while away.
package struct PushBearer: Sendable, Equatable {
    /// The claim `sub`.
    package let user: Name
    /// The claim `session_id`, if the token has one.
    package let session: Name?
    /// The Postgres role to act as.
    package let role: Name
    /// All claims, as a JSON object.
    package let claims: [UInt8]

    /// Nil for claims that name no user, and for those that a Postgres text cannot hold (U+0000).
    package init?(_ claims: Claims) {
        guard let user = claims.subject, !user.isEmpty else { return nil }
        let session = claims.session
        let texts = [user, session ?? "", claims.role]
        guard texts.allSatisfy({ !$0.utf8.contains(0) && $0.utf8.count <= Self.longestText }),
            !Self.hasNull(JSON(trusted: claims.json[...]))
        else { return nil }
        self.user = user
        self.session = session
        role = claims.role
        self.claims = claims.json
    }

    /// The size limit of an index entry (2,704 bytes), with room for its other columns.
    private static let longestText = 1000

    /// jsonb accepts no U+0000, neither in keys nor in values.
    private static func hasNull(_ value: JSON) -> Bool {
        switch value.kind {
        case .string: return value.string?.utf8.contains(0) ?? false
        case .array: return value.elements.contains(where: hasNull)
        case .object:
            var found = false
            value.forEachMember { found = found || $0.key.utf8.contains(0) || hasNull($0.value) }
            return found
        case .number, .bool, .null: return false
        }
    }
}
