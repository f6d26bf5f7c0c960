import CPostgres
import Glibc

/// A conninfo taken apart, with the defaults a hub needs where the user said nothing.
struct ConnectionOptions {
    private(set) var values: [(keyword: String, value: String)] = []

    /// - Throws: `PostgresError` where libpq cannot read the string.
    init(conninfo: String) throws {
        var message: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(conninfo, &message) else {
            let reason = message.map { String(cString: $0).trimmed } ?? "out of memory"
            PQfreemem(message)
            throw PostgresError(.connection, "The database URL cannot be read (\(reason)); correct ROOST_DATABASE_URL.")
        }
        defer { PQconninfoFree(options) }
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val {
                values.append((String(cString: keyword), String(cString: value)))
            }
            option += 1
        }
        // A dead peer is noticed within half a minute: without these, a feed can listen to a vanished server for hours.
        setDefault("keepalives_idle", "10")
        setDefault("keepalives_interval", "5")
        setDefault("keepalives_count", "3")
        setDefault("tcp_user_timeout", "15000")
        setDefault("fallback_application_name", "roost")
        values.removeAll { $0.keyword == "client_encoding" }
        values.append(("client_encoding", "UTF8"))
    }

    private mutating func setDefault(_ keyword: String, _ value: String) {
        if !values.contains(where: { $0.keyword == keyword }) { values.append((keyword, value)) }
    }

    /// Starts connecting without blocking (but for the look-up of a host name).
    func start() -> OpaquePointer? {
        let keywords = values.map { strdup($0.keyword) } + [nil]
        let texts = values.map { strdup($0.value) } + [nil]
        defer { (keywords + texts).forEach { free($0) } }
        return keywords.map { UnsafePointer($0) }.withUnsafeBufferPointer { keywords in
            texts.map { UnsafePointer($0) }.withUnsafeBufferPointer { texts in
                PQconnectStartParams(keywords.baseAddress, texts.baseAddress, 0)
            }
        }
    }
}
