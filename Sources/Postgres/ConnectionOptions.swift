import CPostgres
import Glibc

/// A parsed conninfo, with the defaults that a hub needs for options the user left out.
package struct ConnectionOptions {
    private(set) var values: [(keyword: String, value: String)] = []

    /// - Throws: `PostgresError` if libpq cannot parse the string.
    package init(conninfo: String) throws {
        var message: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(conninfo, &message) else {
            let reason = message.map { String(cString: $0).trimmed } ?? "out of memory"
            PQfreemem(message)
            throw Self.unreadableError(Self.withoutQuotations(reason))
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
        // Detects a vanished peer within 11 s, by unanswered probes of an idle connection (5 s + 3 × 2 s) or by
        // unacknowledged bytes: without these settings, a feed can listen to a dead peer for hours.
        setDefault("keepalives_idle", "5")
        setDefault("keepalives_interval", "2")
        setDefault("keepalives_count", "3")
        setDefault("tcp_user_timeout", "10000")
        setDefault("connect_timeout", "5")
        // Several hosts are a primary and its standbys. Not `read-write`: a role whose transactions are read-only by
        // default would then find no primary, although the hub's sessions may well write.
        if hostCount > 1 { setDefault("target_session_attrs", "primary") }
        setDefault("fallback_application_name", "roost")
        values.removeAll { $0.keyword == "client_encoding" }
        values.append(("client_encoding", "UTF8"))
    }

    /// If a password contains an `@` or a `/` that is not percent-encoded, libpq takes a piece of the password for the host
    /// or the port, and quotes it in its messages.
    private func checkForPieces() throws {
        for (keyword, value) in values {
            let isPiece =
                switch keyword {
                case "host", "hostaddr": value.contains("@")
                case "port": !value.allSatisfy { $0.isNumber || $0 == "," }
                default: false
                }
            guard isPiece else { continue }
            throw Self.unreadableError(
                "its \(keyword) looks like a piece of a password, in which @ is %40 and / is %2F")
        }
    }

    /// libpq quotes the text that it cannot parse, which may be a piece of a password.
    private static func withoutQuotations(_ message: String) -> String {
        let parts = message.split(separator: "\"", omittingEmptySubsequences: false)
        return parts.enumerated().map { $0.offset.isMultiple(of: 2) ? String($0.element) : "…" }.joined()
    }

    static func unreadableError(_ reason: String) -> PostgresError {
        PostgresError(
            .connection, "The database URL cannot be read (\(reason)); correct database.url (ROOST_DATABASE_URL).")
    }

    private mutating func setDefault(_ keyword: String, _ value: String) {
        if !values.contains(where: { $0.keyword == keyword }) { values.append((keyword, value)) }
    }

    /// The same options for a walsender's session in the database (libpq's `replication=database`).
    var replicating: ConnectionOptions {
        var options = self
        options.values.removeAll { $0.keyword == "replication" }
        options.values.append(("replication", "database"))
        return options
    }

    private func optionValue(_ keyword: String) -> String? { values.first { $0.keyword == keyword }?.value }

    private static func splitList(_ value: String) -> [String] {
        value.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    private var hostCount: Int {
        (optionValue("hostaddr") ?? optionValue("host")).map { Self.splitList($0).count } ?? 1
    }

    /// Time limit for connecting to one host; libpq applies its own `connect_timeout` only when libpq does the waiting.
    var connectLimit: Duration {
        let seconds = optionValue("connect_timeout").flatMap { Int($0) } ?? 0
        // As in libpq: 0 and below mean no limit, 1 means 2.
        return seconds <= 0 ? .seconds(86_400) : .seconds(max(2, seconds))
    }

    /// The options for each host, in the order of the attempts.
    ///
    /// libpq would try the next host only when the previous one refuses; a frozen host would block it for ever.
    var hosts: [ConnectionOptions] {
        guard hostCount > 1 else { return [self] }
        let lists = ["host", "hostaddr", "port"].compactMap { keyword in
            optionValue(keyword).map { (keyword: keyword, values: Self.splitList($0)) }
        }
        // libpq reports lists of different lengths.
        guard lists.allSatisfy({ $0.values.count == hostCount || ($0.keyword == "port" && $0.values.count == 1) })
        else {
            return [self]
        }
        return (0..<hostCount).map { index in
            var single = self
            for list in lists {
                guard let place = single.values.firstIndex(where: { $0.keyword == list.keyword }) else { continue }
                single.values[place].value = list.values[list.values.count == 1 ? 0 : index]
            }
            return single
        }
    }

    /// The host as messages name it.
    var hostName: String { optionValue("host") ?? optionValue("hostaddr") ?? "its host" }

    /// Advice for a refusal that even a reader of Postgres' own message would have to look up.
    func remedy(for reason: String) -> String? {
        guard reason.contains("permission denied for database") else { return nil }
        let names = ["dbname", "user"].map { (optionValue($0) ?? "…").replacing("\"", with: "\"\"") }
        return " Run `grant connect on database \"\(names[0])\" to \"\(names[1])\"` as the database's owner."
    }

    /// Starts connecting without blocking (except for the host name's look-up).
    func startConnecting() -> OpaquePointer? {
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

extension PostgresConnection {
    /// - Throws: `PostgresError` with every host's reason.
    static func connect(
        _ options: ConnectionOptions, _ waiter: any SocketWaiter, within limit: Duration
    ) throws -> OpaquePointer {
        var reasons: [String] = []
        for host in options.hosts {
            guard let raw = host.startConnecting() else {
                throw PostgresError(.connection, "Out of memory while connecting.")
            }
            do {
                try establishConnection(raw, host, waiter, within: min(limit, host.connectLimit))
                return raw
            } catch {
                PQfinish(raw)
                let reason = (error as? PostgresError)?.message ?? "\(error)"
                reasons.append(reason + (host.remedy(for: reason) ?? ""))
            }
        }
        throw PostgresError(.connection, reasons.joined(separator: "; "))
    }

    private static func establishConnection(
        _ raw: OpaquePointer, _ host: ConnectionOptions, _ waiter: any SocketWaiter, within limit: Duration
    ) throws {
        let deadline = ContinuousClock.now + limit
        var state = PGRES_POLLING_WRITING
        while true {
            guard PQstatus(raw) != CONNECTION_BAD else { throw failure(of: raw) }
            do {
                switch state {
                case PGRES_POLLING_OK: return
                case PGRES_POLLING_READING: try waiter.wait(for: PQsocket(raw), events: Int16(POLLIN), until: deadline)
                case PGRES_POLLING_WRITING: try waiter.wait(for: PQsocket(raw), events: Int16(POLLOUT), until: deadline)
                default: throw failure(of: raw)
                }
            } catch let error as PostgresError where error.kind == .timeout {
                throw PostgresError(
                    .timeout, "\(host.hostName) did not answer a connection within \(limit.components.seconds) s")
            }
            state = PQconnectPoll(raw)
        }
    }
}

/// Validates a connection string without connecting.
package enum DatabaseURL {
    /// - Throws: `PostgresError` if no connection could ever be made with it. The message quotes no part of the string,
    ///   which contains a password.
    package static func checkConninfo(_ conninfo: String) throws {
        let options = try ConnectionOptions(conninfo: conninfo)
        let ports = options.values.first { $0.keyword == "port" }?.value ?? ""
        let areRight = ports.split(separator: ",").allSatisfy { (1...65_535).contains(Int($0) ?? 0) }
        guard areRight else { throw ConnectionOptions.unreadableError("a port is a number from 1 to 65535") }
    }
}
