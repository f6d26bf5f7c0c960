import ChangeFeed
import Postgres

/// Checks whether clients receive anything at all: the roles of their tokens, and the tables these may read.
extension Doctor {
    static func checkRoles(_ connection: PostgresConnection) throws -> [Finding] {
        let rows = try connection.query(ClientRolesSQL.clientRoles, ["", ClientRoles.membershipPrivilege(connection)])
        let roles = (0..<rows.count).map { (name: rows.text($0, 0) ?? "", exists: rows.flag($0, 1), row: $0) }
        let own = try connection.query(ClientRolesSQL.ownRoles)
        let missing = missingRoles(roles.filter { !$0.exists }.map(\.name), of: roles.count, hasOthers: own.count > 0)
        let outOfReach = roles.filter { $0.exists && !rows.flag($0.row, 3) }.map(\.name)
        guard !outOfReach.isEmpty || !missing.isEmpty else {
            return [Finding(.good, "roles", "The hub may ask as the roles of its clients.")]
        }
        return try missing + unreachableRoles(outOfReach, connection)
    }

    /// If the hub was granted the operator's own roles, tokens may name those.
    private static func missingRoles(_ names: [String], of count: Int, hasOthers: Bool) -> [Finding] {
        let severity = hasOthers ? Finding.Severity.warning : .error
        if names.count == count {
            return [
                Finding(
                    severity, "roles",
                    "The database has none of the roles that tokens name (\(names.joined(separator: ", "))), so no client gets "
                        + "a row change or enters a private channel; run `roost init --yes`.")
            ]
        }
        return names.map {
            Finding(
                severity, "roles",
                "The database has no role \($0), so tokens with that role get no row changes and enter no private channel; "
                    + "run `roost init --yes`.")
        }
    }

    /// Unless row level security decides something, the hub need not become the role.
    private static func unreachableRoles(_ names: [String], _ connection: PostgresConnection) throws -> [Finding] {
        guard !names.isEmpty else { return [] }
        let state = try connection.query(DoctorSQL.realtimeState)
        let hub = state.text(0, 2) ?? "the hub's role"
        let isNeeded = try CatalogReader.tables(from: connection).contains(where: \.hasRowSecurity) || state.flag(0, 3)
        return names.map { role in
            Finding(
                isNeeded ? .error : .warning, "roles",
                "This role may not become \(role), so tokens with that role see nothing that row level security decides; "
                    + "run `grant \(role) to \(hub)`.")
        }
    }

    /// Finds watched tables that no role may read: each subscription to them is refused.
    static func checkReaders(_ connection: PostgresConnection) throws -> [Finding] {
        let oids = try CatalogReader.tables(from: connection).map { String($0.oid) }
        guard !oids.isEmpty else { return [] }
        let tables = try connection.query(
            ClientRolesSQL.unreadableTables, ["{" + oids.joined(separator: ",") + "}"])
        guard tables.count > 0 else {
            return [Finding(.good, "readers", "Every watched table can be read by a role that tokens name.")]
        }
        return (0..<tables.count).compactMap { tables.text($0, 0) }.map { table in
            Finding(
                .error, "readers",
                "No role that tokens name may read \(table), so no client gets its changes; run "
                    + "`roost init \(ShellArgument.quoted(table)) --yes`, which lets authenticated read it, or unwatch it."
            )
        }
    }
}

/// A word quoted for a shell.
package enum ShellArgument {
    package static func quoted(_ text: String) -> String {
        let isPlain =
            !text.isEmpty && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "._-".contains($0)) }
        return isPlain ? text : "'" + text.replacing("'", with: #"'\''"#) + "'"
    }
}
