import Identity
import Logging
import Postgres
import Push
import Settings

/// The configuration's keys for tokens.
extension RoostConfiguration {
    /// Reads the keys and starts watching them. Waits for `jwks.url` once, a few seconds at most.
    ///
    /// - Parameter command: the name in errors: `roost serve`.
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

/// Checks everything that would keep `roost serve` from starting, as far as possible without a database or a network.
extension RoostConfiguration {
    func checkForServing() async throws {
        let command = "roost serve"
        try checkDatabase(requireDatabaseURL(for: command))
        try requireKeys(for: command)
        try await checkKeyFile()
        try checkCertificate()
        _ = try notificationMappings()
        _ = try pushServices()
        // Even if nothing is pushed: faults are better found before pushes are wanted.
        _ = try pushRules(bundle: push.topic ?? "", audience: nil, facts: nil)
    }

    private func checkDatabase(_ url: String) throws {
        do {
            try DatabaseURL.checkConninfo(url)
        } catch {
            throw RunFailure("\(errorSubject("database.url")): \(error)", .configuration)
        }
    }

    private func checkKeyFile() async throws {
        var settings = keySettings
        settings.url = nil
        for source in await settings.examineSources() {
            if case .failure(let problem) = source.outcome { throw RunFailure("\(problem).", .configuration) }
        }
    }
}
