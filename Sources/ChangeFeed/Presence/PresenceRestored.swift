package import Hub
import Postgres

/// Whom a hub's last process served, as far as it wrote it down.
package struct PresenceRestored: Sendable {
    package var presences: [PresenceRecord] = []
    /// Users that the application was told to be online, and when they certainly still were, as far as is known, in
    /// milliseconds since 1970.
    package var users: [(user: String, seen: Int64)] = []

    package init() {}
}
