import ArgumentParser
import Settings

/// The flags for settings, common to all commands that read the configuration.
///
/// They are taken as text: bounds and types are checked together with those of the file and the environment, so that
/// the same mistake gets the same sentence.
struct ConfigurationOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The configuration file.", valueName: "file"), completion: .file(extensions: ["yaml"]))
    var config: String?

    @Option(help: ArgumentHelp("The database to follow (database.url).", valueName: "url"))
    var databaseURL: String?

    @Option(help: ArgumentHelp("The address that clients connect to (http.host).", valueName: "host"))
    var httpHost: String?

    @Option(help: ArgumentHelp("The port that clients connect to (http.port).", valueName: "port"))
    var httpPort: String?

    @Option(help: ArgumentHelp("The operator's port, 0 for none (ops.port).", valueName: "port"))
    var opsPort: String?

    @Option(
        help: ArgumentHelp(
            "The secret of clients' tokens (jwt.secret). Other users of this machine can see flags; prefer "
                + "ROOST_JWT_SECRET.", valueName: "secret"))
    var jwtSecret: String?

    @Option(help: ArgumentHelp("Event loops, 0 for one per core (loops).", valueName: "count"))
    var loops: String?

    @Option(help: ArgumentHelp("How much is logged, trace to critical (log.level).", valueName: "level"))
    var logLevel: String?

    /// The configuration in force. Applies its log settings, and logs its warnings.
    func loadAndApply() throws(ConfigurationError) -> RoostConfiguration {
        let configuration = try readLayers()
        LogOutput.standard.applySettings(configuration)
        for sentence in configuration.warnings { configuration.logger.warning("\(sentence)") }
        return configuration
    }

    /// Reads all layers.
    func readLayers() throws(ConfigurationError) -> RoostConfiguration {
        try RoostConfiguration.load(file: config, flags: flags)
    }

    private var flags: [String: String] {
        [
            "database.url": databaseURL,
            "http.host": httpHost,
            "http.port": httpPort,
            "ops.port": opsPort,
            "jwt.secret": jwtSecret,
            "loops": loops,
            "log.level": logLevel,
        ].compactMapValues { $0 }
    }
}
