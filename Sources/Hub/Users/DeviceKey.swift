import Wire

/// One sign-in of a user, which is one device: what a Live Activity asks of is the phone that shows it, not the laptop of
/// the same user.
package enum DeviceKey {
    /// - Parameter session: the claim `session_id`, as Supabase Auth gives one to each sign-in.
    package static func of(user: String, session: String) -> String { "\(session) \(user)" }

    /// Nil where the token names no user, or no session.
    package static func of(_ claims: Claims) -> String? {
        guard let user = claims.subject, let session = claims.session else { return nil }
        return of(user: user, session: session)
    }
}

extension Claims {
    /// The claim `session_id`.
    package var session: String? {
        JSON(trusted: json[...])["session_id"]?.string.flatMap { $0.isEmpty ? nil : $0 }
    }
}
