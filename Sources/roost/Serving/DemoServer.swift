import ChangeFeed
import Demo
import Foundation
import Glibc
import Identity
import Settings

/// `roost demo`: a private Postgres, the sample chat, the hub and the page.
struct DemoServer {
    private let configuration: RoostConfiguration
    private let folder: URL
    private let fresh: Bool
    private let postgresPort: Int

    init(_ configuration: RoostConfiguration, folder: String, fresh: Bool, postgresPort: Int) {
        self.configuration = configuration
        self.folder = URL(fileURLWithPath: folder).standardizedFileURL
        self.fresh = fresh
        self.postgresPort = postgresPort
    }

    func run() async throws {
        Signals.listen(to: [SIGINT, SIGTERM])
        let programs = ProcessInfo.processInfo.environment[Setting.postgresProgramsVariable]
        let cluster = try RunFailure.wrapping {
            try PrivateCluster(folder: folder, port: postgresPort, programs: programs.flatMap { $0.isEmpty ? nil : $0 })
        }
        let conninfo = cluster.conninfo(database: "chat")
        let secret: String
        do {
            secret = try RunFailure.wrapping { try start(cluster, conninfo) }
            if Signals.wasInterrupted { return try RunFailure.wrapping { try cluster.stop() } }
        } catch {
            // Ctrl-C reaches the programs that set the database up, too: their failing is no failure then.
            if Signals.wasInterrupted { return try RunFailure.wrapping { try cluster.stop() } }
            throw error
        }
        let psql = "psql \(conninfo)"
        let tokens = TokenGate(secret: secret)
        let api = DemoAPI(
            conninfo: conninfo, psql: psql, tokens: tokens, mint: TokenMint(secret: secret),
            logger: configuration.logger, clock: { Clock.now() })
        let page = "\(configuration.pageScheme)://\(configuration.httpHost):\(configuration.httpPort)/demo/"
        let ops = configuration.opsPort.map { "http://\(configuration.opsHost):\($0)/" }
        let server = Server(
            configuration, databaseURL: conninfo, tokens: tokens, handler: api,
            statements: .ofSampleChat,
            whenReady: {
                StandardOutput.line("")
                StandardOutput.line("  chat page   \(page)")
                if let ops { StandardOutput.line("  operators   \(ops)") }
                StandardOutput.line("  database    \(psql)")
                StandardOutput.line("")
                StandardOutput.line("  Ctrl-C stops everything; the data stays in \(folder.path).")
            })
        do {
            try await server.run()
        } catch {
            try cluster.stop()
            throw error
        }
        try RunFailure.wrapping { try cluster.stop() }
    }

    private func start(_ cluster: PrivateCluster, _ conninfo: String) throws -> String {
        if fresh { try cluster.remove() }
        StandardError.write("Starting the demo's Postgres on 127.0.0.1:\(postgresPort) …\n")
        try cluster.start()
        try cluster.createDatabase("chat")
        try DemoSchema.install(conninfo: conninfo)
        _ = try Migrator.migrate(conninfo: conninfo)
        try DemoSchema.watch(conninfo: conninfo)
        return try DemoSecret.load(from: folder)
    }
}
