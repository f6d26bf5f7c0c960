package import Hub
import Postgres
package import Wire

extension PushStore {
    /// Notes a phone's token. What the same phone (`session`) had before it, or `old`, is forgotten; a token that another
    /// user registered is this user's from here on. The answer has the environment that Apple has named, if it has.
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
            registeredAt: row.figure(0, 0) ?? 0, keys: keys)
    }

    /// Keeps with a token, be it of phones or of an activity, which environment Apple knows it in.
    ///
    /// - Parameter destination: as the token was read from here.
    /// - Returns: how many registrations that were.
    package func keep(_ environment: PushEnvironment, of destination: PushDestination) throws -> Int {
        let kept = try connection.query(
            DeviceSQL.keepEnvironment, destination.columns + [environment.rawValue])
        return Int(kept.figure(0, 0) ?? 0)
    }

    /// Forgets a token of a user, for alerts and for starts.
    ///
    /// - Returns: whether the user had it.
    package func unregister(_ token: PushToken, of user: Name) throws -> Bool {
        try Self.demandStorable(user)
        return try connection.query(DeviceSQL.unregisterDevice, [token.text, user.text]).affectedRows > 0
    }

    /// The newest first.
    package func devices(of user: Name) throws -> [DeviceRegistration] {
        try Self.demandStorable(user)
        let rows = try connection.query(DeviceSQL.devicesOfUser, [user.text])
        return (0..<rows.count).compactMap { row in
            guard let destination = PushDestination(rows, row, from: 0) else { return nil }
            let kind = rows.text(row, 3).map { DeviceRegistration.Kind.start(attributesType: $0) } ?? .alert
            return DeviceRegistration(
                user: user, destination: destination, kind: kind, registeredAt: rows.figure(row, 4) ?? 0)
        }
    }

    /// libpq would cut them off at a NUL, and they would be somebody else's.
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
    /// From the columns token, environment and bundle; nil for what roost did not write.
    init?(_ rows: QueryResult, _ row: Int, from column: Int) {
        guard let text = rows.text(row, column), let place = rows.text(row, column + 1),
            let bundle = rows.name(row, column + 2)
        else { return nil }
        let environment = PushEnvironment(rawValue: place)
        guard let kind = environment == nil ? PushKind(rawValue: place) : .apns, let token = PushToken(text, of: kind)
        else { return nil }
        self.init(token: token, environment: environment ?? .production, bundle: bundle)
    }

    /// The column environment, which says of which service the token is.
    var environmentColumn: String { kind == .apns ? environment.rawValue : kind.rawValue }

    /// What the column may say of devices of a kind.
    static func environments(of kind: PushKind) -> [String] {
        kind == .apns ? PushEnvironment.allCases.map(\.rawValue) : [kind.rawValue]
    }
}

extension WebPushKeys {
    /// As the column keys has them.
    var column: String { Base64URL.encode(publicKey) + "." + Base64URL.encode(secret) }

    init?(column: String) {
        let parts = column.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let publicKey = Base64URL.decode(parts[0].utf8),
            let secret = Base64URL.decode(parts[1].utf8)
        else { return nil }
        self.init(publicKey: publicKey, secret: secret)
    }
}

/// Whoever registers a phone or an activity, by the token that was verified for the request.
///
/// Claims are kept with the registration: what a user may be told of a row while away is asked of the policies with them.
package struct PushBearer: Sendable, Equatable {
    /// The claim `sub`.
    package let user: Name
    /// The claim `session_id`, where the token has one.
    package let session: Name?
    /// The Postgres role to act as.
    package let role: Name
    /// All claims, as a JSON object.
    package let claims: [UInt8]

    /// Nil for claims that name no user, and for those that Postgres has no text for (U+0000).
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

    /// What an index takes (2,704 bytes for a whole entry) with room for its other columns.
    private static let longestText = 1000

    /// jsonb takes no U+0000, neither in keys nor in values.
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
