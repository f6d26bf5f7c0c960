import Identity
import Logging
import Postgres
import Push
import Settings

/// The configuration's keys for tokens.
extension RoostConfiguration {
    /// Reads the keys and begins to watch them. Waits for `jwks.url` once, a few seconds at most.
    ///
    /// - Parameter command: as an error names it: `roost serve`.
    func openKeys(for command: String) async throws -> KeyRefresher {
        try requireKeys(for: command)
        do {
            return try await KeyRefresher.open(keySettings, logger: logger)
        } catch {
            throw RunFailure("\(error).", .configuration)
        }
    }

    var keySettings: KeySettings {
        var settings = KeySettings()
        settings.secrets = (jwtSecret.map { [$0] } ?? []) + jwtPreviousSecrets
        settings.file = jwksFile
        settings.url = jwksURL
        if !jwtAlgorithms.isEmpty {
            settings.algorithms = Set(jwtAlgorithms.compactMap { SignatureAlgorithm(rawValue: $0) })
        }
        settings.rules = ClaimRules(issuers: jwtIssuers, audiences: jwtAudiences)
        return settings
    }
}

/// Everything that `roost serve` does not start with, and that can be seen without a database and without a network.
extension RoostConfiguration {
    func checkForServing() async throws {
        let command = "roost serve"
        try checkDatabase(requireDatabaseURL(for: command))
        try requireKeys(for: command)
        try await checkKeyFile()
        try checkCertificate()
        _ = try notificationMappings()
        _ = try pushServices()
        // Also where nothing is pushed: what is wrong is better found before it is wanted.
        _ = try pushRules(bundle: push.topic ?? "", audience: nil, facts: nil)
    }

    private func checkDatabase(_ url: String) throws {
        do {
            try DatabaseURL.check(url)
        } catch {
            throw RunFailure("\(subject("database.url")): \(error)", .configuration)
        }
    }

    private func checkKeyFile() async throws {
        var settings = keySettings
        settings.url = nil
        for source in await settings.examine() {
            if case .failure(let problem) = source.outcome { throw RunFailure("\(problem).", .configuration) }
        }
    }
}
