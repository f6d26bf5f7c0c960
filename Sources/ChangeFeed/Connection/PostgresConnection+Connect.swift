import CPostgres
import Glibc

extension PostgresConnection {
    /// - Throws: `PostgresError` with what every host said.
    static func connect(
        _ options: ConnectionOptions, _ waiter: any SocketWaiter, within limit: Duration
    ) throws -> OpaquePointer {
        var reasons: [String] = []
        for host in options.hosts {
            guard let raw = host.start() else { throw PostgresError(.connection, "Out of memory while connecting.") }
            do {
                try establish(raw, host, waiter, within: min(limit, host.connectLimit))
                return raw
            } catch {
                PQfinish(raw)
                let reason = (error as? PostgresError)?.message ?? "\(error)"
                reasons.append(reason + (host.remedy(for: reason) ?? ""))
            }
        }
        throw PostgresError(.connection, reasons.joined(separator: "; "))
    }

    private static func establish(
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
