import Administration
import ArgumentParser
import Demo
import Foundation
import Glibc
import Identity
import Push
import Settings

struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Run a private Postgres with a sample chat, the hub, and a page to open.",
        discussion: """
            Everything it makes is kept in one folder and used again the next time. Ctrl-C stops the hub and the \
            Postgres it started. The database and the secret are the demo's own; database.url and jwt.secret are not \
            used.
            """
    )

    @Option(help: ArgumentHelp("The folder for the database and its data.", valueName: "folder"))
    var folder = ".roost"

    @Flag(help: "Throw the folder's data away first.")
    var fresh = false

    @Option(help: ArgumentHelp("The port of the private Postgres, on 127.0.0.1.", valueName: "port"))
    var postgresPort = 54329

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        try await DemoServer(options.loadAndApply(), folder: folder, fresh: fresh, postgresPort: postgresPort).run()
    }
}

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
        Signals.handleSignals(to: [SIGINT, SIGTERM])
        let programs = ProcessInfo.processInfo.environment[Setting.postgresProgramsVariable]
        let cluster = try RunFailure.wrapping {
            try PrivateCluster(folder: folder, port: postgresPort, programs: programs.flatMap { $0.isEmpty ? nil : $0 })
        }
        let lock = try RunFailure.wrapping { try FolderLock(folder) }
        defer { withExtendedLifetime(lock) {} }
        let conninfo = cluster.conninfo(database: "chat")
        let secret: String
        var configuration = configuration
        do {
            secret = try RunFailure.wrapping { try startDatabase(cluster, conninfo) }
            if configuration.webPush.privateKey == nil {
                configuration.webPush.privateKey = try RunFailure.wrapping { try DemoSecret.pushKey(from: folder) }
                configuration.webPush.subject = configuration.webPush.subject ?? "mailto:demo@example.com"
            }
            if Signals.wasInterrupted { return try RunFailure.wrapping { try cluster.stop() } }
        } catch {
            // Ctrl-C also reaches the programs that set up the database: their failure is expected then.
            if Signals.wasInterrupted { return try RunFailure.wrapping { try cluster.stop() } }
            throw error
        }
        let psql = "psql \(conninfo)"
        let verifier = JWTVerifier(secret: secret)
        let page = "\(configuration.pageScheme)://\(configuration.httpHost):\(configuration.httpPort)/demo/"
        let ops = configuration.opsPort.map { "http://\(configuration.opsHost):\($0)/" }
        var streams = configuration.streams
        streams.directory = streams.directory ?? folder.appending(path: "streams").path
        streams.onClose = streams.onClose ?? DemoSchema.keepsReplies
        let server = Server(
            configuration, databaseURL: conninfo, tokens: verifier,
            handler: { [logger = configuration.logger, operatorPort = configuration.opsPort] streams in
                DemoAPI(
                    conninfo: conninfo, psql: psql, operatorPort: operatorPort, verifier: verifier,
                    mint: TokenMint(secret: secret), streams: streams, logger: logger, clock: { Clock.now() })
            },
            statements: .ofSampleChat, streams: streams,
            whenReady: {
                StandardOutput.writeLine("")
                StandardOutput.writeLine("  chat page   \(page)")
                if let ops { StandardOutput.writeLine("  operators   \(ops)") }
                StandardOutput.writeLine("  database    \(psql)")
                StandardOutput.writeLine("")
                StandardOutput.writeLine("  Ctrl-C stops everything; the data stays in \(folder.path).")
            })
        do {
            try await server.runUntilSignal()
        } catch {
            try cluster.stop()
            throw error
        }
        try RunFailure.wrapping { try cluster.stop() }
    }

    private func startDatabase(_ cluster: PrivateCluster, _ conninfo: String) throws -> String {
        if fresh { try cluster.remove() }
        StandardError.write("Starting the demo's Postgres on 127.0.0.1:\(postgresPort) …\n")
        try cluster.start()
        try cluster.createDatabase("chat")
        try DemoSchema.install(conninfo: conninfo)
        _ = try Migrator.migrate(conninfo: conninfo)
        try DemoSchema.installAssistant(conninfo: conninfo)
        try DemoSchema.watch(conninfo: conninfo)
        return try DemoSecret.loadOrCreate(from: folder)
    }
}

/// The demo's secrets, each made once and kept, so that open pages and subscriptions of browsers survive a restart.
enum DemoSecret {
    /// Loads or creates the secret that signs tokens.
    static func loadOrCreate(from folder: URL) throws -> String {
        try load("jwt-secret", from: folder) {
            var generator = SystemRandomNumberGenerator()
            return (0..<4).map { _ in String(generator.next() as UInt64, radix: 36) }.joined(separator: "-")
        }
    }

    /// Loads or creates the key that identifies the hub to browsers' push services.
    static func pushKey(from folder: URL) throws -> String {
        try load("push-key", from: folder) { VAPIDKey.create()?.privateText ?? "" }
    }

    private static func load(_ name: String, from folder: URL, otherwise make: () -> String) throws -> String {
        let file = folder.appendingPathComponent(name)
        if FileManager.default.fileExists(atPath: file.path) {
            return try String(contentsOf: file, encoding: .utf8)
        }
        let secret = make()
        let isMade = FileManager.default.createFile(
            atPath: file.path, contents: Data(secret.utf8), attributes: [.posixPermissions: 0o600])
        guard isMade else { throw RunFailure("Cannot write \(file.path); choose another folder with --folder.") }
        return secret
    }
}
