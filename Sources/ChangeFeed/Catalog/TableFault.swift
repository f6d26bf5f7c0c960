import Hub
import Matching
import Postgres

/// A fault that keeps changes of a watched table from being recorded exactly once (TableFaults in Catalog.sql).
struct TableFault: Sendable, Equatable {
    /// The name given in TableFaults of Catalog.sql.
    let name: String
    /// True if the table itself has the fault; if only its partitions do, only writes that name a partition are lost.
    let concernsItself: Bool

    /// The message for the table's subscribers and the log; nil if nothing is lost.
    func complaint(about table: Table) -> SubscriptionComplaint? {
        guard name != "twice" else { return nil }
        let name = SQLText.qualifiedName(table.schema, table.name)
        let command = "roost watch \(ShellText.quoteArgument(name))"
        switch self.name {
        case "both":
            return SubscriptionComplaint(
                "Changes of \(table.schema).\(table.name) arrive twice, as triggers and the WAL both report them; run: "
                    + "\(command)",
                isError: false)
        case "unread":
            return SubscriptionComplaint(
                "Changes of \(table.schema).\(table.name) reach nobody, as no hub reads the WAL; run a hub with feed.capture: "
                    + "wal, or, with feed.capture: triggers: roost unwatch \(ShellText.quoteArgument(name)); \(command)",
                isError: true)
        case "applied":
            return SubscriptionComplaint(
                "Some changes of \(table.schema).\(table.name) reach nobody, as logical replication (a subscription) writes "
                    + "them, which fires no triggers of roost's; run a hub with feed.capture: wal, and: \(command)",
                isError: true)
        case "inherits":
            return SubscriptionComplaint(
                "Some changes of \(table.schema).\(table.name) reach nobody, as it inherits from another table or another one from "
                    + "it, which triggers do not follow; run a hub with feed.capture: wal, and: \(command)",
                isError: true)
        case "narrow":
            return SubscriptionComplaint(
                "Some changes of \(table.schema).\(table.name) reach nobody, as the publication roost leaves them out or a "
                    + "part of the table is unlogged; run: \(command)", isError: true)
        default: break
        }
        guard concernsItself else {
            return SubscriptionComplaint(
                "Direct writes to a new partition of \(table.schema).\(table.name) reach nobody; run: \(command)",
                isError: false)
        }
        return SubscriptionComplaint(
            "Some changes of \(table.schema).\(table.name) reach nobody, as triggers of roost's are missing or disabled; "
                + "run: \(command)", isError: true)
    }

    /// The faults that lose or duplicate changes of rows, by the table's oid.
    static func readFaults(from connection: PostgresConnection, readsWAL: Bool) throws -> [UInt32: [TableFault]] {
        let rows = try CatalogReader.tableFaults(from: connection, readsWAL: readsWAL)
        var faults: [UInt32: [TableFault]] = [:]
        for row in 0..<rows.count where rows.flag(row, 4) {
            guard let oid = rows.text(row, 3).flatMap({ UInt32($0) }), let name = rows.text(row, 1) else { continue }
            faults[oid, default: []].append(TableFault(name: name, concernsItself: rows.flag(row, 2)))
        }
        return faults
    }
}

/// A table that has the name of a watched one but is not watched itself.
package struct DisplacedTable: Sendable {
    let name: String
    /// The watched table's present name; nil if it is gone.
    let watched: String?

    /// The fault and its remedy.
    package var sentence: String {
        let command = "roost watch \(ShellText.quoteArgument(name))"
        guard let watched else {
            return "\(name) was created anew and is not watched, so its changes reach nobody; run `\(command)`."
        }
        let others = ShellText.quoteArgument(watched)
        return "\(name) is another table than the one that was watched, which is called \(watched) now, so its changes "
            + "reach nobody; run `\(command)`, or, if that is meant to be so, `roost unwatch \(others)` and `roost watch "
            + "\(others)`."
    }
}

/// Text for a shell, in the commands that messages tell people to run.
enum ShellText {
    /// `text` as one argument, quoted if the shell would split it.
    static func quoteArgument(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "-"): true
            default: false
            }
        }
        if isPlain, !text.isEmpty { return text }
        return "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
