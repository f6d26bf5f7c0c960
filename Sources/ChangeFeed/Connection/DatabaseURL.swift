/// A connection string, looked at without connecting.
package enum DatabaseURL {
    /// - Throws: `PostgresError` where no connection could ever be made with it. Its message quotes nothing of the string,
    ///   in which a password stands.
    package static func check(_ conninfo: String) throws {
        let options = try ConnectionOptions(conninfo: conninfo)
        let ports = options.values.first { $0.keyword == "port" }?.value ?? ""
        let areRight = ports.split(separator: ",").allSatisfy { (1...65_535).contains(Int($0) ?? 0) }
        guard areRight else { throw ConnectionOptions.unreadable("a port is a number from 1 to 65535") }
    }
}
