import Identity
import Logging
import Settings

/// The configuration's keys, read and kept current.
extension RoostConfiguration {
    /// Reads the keys and begins to watch them. Waits for `jwks.url` once, a few seconds at most.
    ///
    /// - Parameter command: as an error names it: `roost serve`.
    func openKeys(for command: String) async throws -> KeyKeeper {
        try requireKeys(for: command)
        do {
            return try await KeyKeeper.open(keySettings, logger: logger)
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
