/// The statements of this room, embedded from `SQL/`.
enum SQL {
    static let session = text(PackageResources.Session_sql)
    static let sessionOfFeed = text(PackageResources.SessionOfFeed_sql)
    static let catalog = text(PackageResources.Catalog_sql)
    static let window = text(PackageResources.Window_sql)
    static let prune = text(PackageResources.Prune_sql)
    static let register = text(PackageResources.Register_sql)
    static let position = text(PackageResources.Position_sql)
    static let storeCursor = text(PackageResources.StoreCursor_sql)
    static let schemaVersion = text(PackageResources.SchemaVersion_sql)
    static let schemaExists = text(PackageResources.SchemaExists_sql)
    static let describeTable = text(PackageResources.DescribeTable_sql)
    static let watchTable = text(PackageResources.WatchTable_sql)
    static let unwatchTable = text(PackageResources.UnwatchTable_sql)
    static let publicationTables = text(PackageResources.PublicationTables_sql)
    static let findTable = text(PackageResources.FindTable_sql)
    static let rights = text(PackageResources.Rights_sql)

    /// In order; the version of the schema is their count.
    static let migrations: [(name: String, sql: String)] = [
        ("001 outbox", text(PackageResources.Migration001Outbox_sql)),
        ("002 triggers", text(PackageResources.Migration002Triggers_sql)),
    ]

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
