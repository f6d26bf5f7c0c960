package import Hub
import Wire

/// Whoever registers a phone or an activity, by the token that was verified for the request.
///
/// Claims are kept with the registration: what a user may be told of a row while away is asked of the policies with them.
package struct PushBearer: Sendable, Equatable {
    /// The claim `sub`.
    package let user: String
    /// The claim `session_id`, where the token has one.
    package let session: String?
    /// The Postgres role to act as.
    package let role: String
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
