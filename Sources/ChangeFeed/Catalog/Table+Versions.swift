import Hub
import Matching

extension Table {
    func isSame(as other: Table) -> Bool {
        oid == other.oid && schema == other.schema && name == other.name && columns == other.columns
            && hasRowSecurity == other.hasRowSecurity
    }

    /// The columns a record was written with, where the table was altered since: each as this table describes it, or as
    /// the older one did.
    func restricted(to record: UnsafeBufferPointer<UInt8>, older: Table?) -> Table {
        let present = RecordKeys.all(of: record)
        let known = columns + (older?.columns ?? []).filter { column($0.name) == nil }
        return Table(
            oid: oid, schema: schema, name: name,
            columns: known.filter { present.contains(RecordKeys.encoded($0.name)) }, hasRowSecurity: hasRowSecurity)
    }
}
