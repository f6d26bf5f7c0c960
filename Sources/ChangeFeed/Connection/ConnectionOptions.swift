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
            throw Self.unreadable(Self.withoutQuotations(reason))
        }
        defer { PQconninfoFree(options) }
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val {
                values.append((String(cString: keyword), String(cString: value)))
            }
            option += 1
        }
        try checkForPieces()
        // A dead peer is noticed within half a minute: without these, a feed can listen to a vanished server for hours.
        setDefault("keepalives_idle", "10")
        setDefault("keepalives_interval", "5")
        setDefault("keepalives_count", "3")
        setDefault("tcp_user_timeout", "15000")
        setDefault("fallback_application_name", "roost")
        values.removeAll { $0.keyword == "client_encoding" }
        values.append(("client_encoding", "UTF8"))
    }

    /// A password with an `@` or a `/` that is not percent-encoded makes libpq take a piece of it for the host or the port,
    /// which its messages quote.
    private func checkForPieces() throws {
        for (keyword, value) in values {
            let isPiece =
                switch keyword {
                case "host", "hostaddr": value.contains("@")
                case "port": !value.allSatisfy { $0.isNumber || $0 == "," }
                default: false
                }
            guard isPiece else { continue }
            throw Self.unreadable("its \(keyword) looks like a piece of a password, in which @ is %40 and / is %2F")
        }
    }

    /// libpq quotes what it does not understand, which may be a piece of a password.
    private static func withoutQuotations(_ message: String) -> String {
        let parts = message.split(separator: "\"", omittingEmptySubsequences: false)
        return parts.enumerated().map { $0.offset.isMultiple(of: 2) ? String($0.element) : "…" }.joined()
    }

    private static func unreadable(_ reason: String) -> PostgresError {
        PostgresError(.connection, "The database URL cannot be read (\(reason)); correct ROOST_DATABASE_URL.")
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
