import Hub
import Wire

extension RowChange {
    /// What the message is called, the same at every hub and after every restart: its table and primary key. Where there is
    /// none, the change's number in the outbox, which all hubs read.
    var messageKey: String {
        let name = "\(table.schema).\(table.name)"
        guard let record else { return "\(name) #\(id)" }
        let row = JSON(trusted: record[...])
        let keys = table.columns.filter(\.isPrimaryKey).compactMap { row[$0.name]?.description }
        return keys.isEmpty ? "\(name) #\(id)" : name + " " + keys.joined(separator: " ")
    }

    /// For the app, which knows its table: the primary key alone, where it is one column.
    var messageID: String? {
        guard let record else { return nil }
        let keys = table.columns.filter(\.isPrimaryKey)
        guard keys.count == 1, let value = keys.first.flatMap({ JSON(trusted: record[...])[$0.name] }) else {
            return nil
        }
        return value.string ?? value.description
    }
}
