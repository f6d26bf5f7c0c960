/// Conditions between settings that are valid one by one.
extension RoostConfiguration {
    /// Rejects values that are valid one by one and contradictory together.
    static func checkTogether(_ values: EffectiveValues) throws(ConfigurationError) {
        if values.integer(.pingAfter) >= values.integer(.idleTimeout) {
            throw values.conflictError(.pingAfter, .idleTimeout, "must be less than", "or no ping is sent in time")
        }
        if values.integer(.payloadBytes) > values.integer(.messageBytes) {
            throw values.conflictError(
                .payloadBytes, .messageBytes, "must not be more than", "which it has to fit into")
        }
        if values.integer(.httpPort) == values.integer(.opsPort) {
            throw values.conflictError(.opsPort, .httpPort, "must not be", "also where the hosts differ")
        }
        try checkListening(values)
        try checkKeys(values)
    }

    /// Rejects a certificate without its key (or the reverse), and a socket path that the kernel does not take.
    private static func checkListening(_ values: EffectiveValues) throws(ConfigurationError) {
        for (given, missing) in [(Setting.tlsCertificate, Setting.tlsKey), (.tlsKey, .tlsCertificate)]
        where values.text(given) != nil && values.text(missing) == nil {
            throw ConfigurationError(
                message:
                    "\(given.key) (\(values[given].origin)) is set and \(missing.key) is not; set both, to PEM files "
                    + "that belong together, or neither.")
        }
        if let path = values.text(.httpSocket), path.utf8.count > longestSocketPath {
            throw ConfigurationError(
                message:
                    "http.socket (\(values[.httpSocket].origin)) is longer than the \(longestSocketPath) bytes that "
                    + "Linux takes for the path of a socket; choose a shorter one.")
        }
    }

    /// unix(7): 108 with the terminating zero.
    private static let longestSocketPath = 107

    /// Rejects keys that would admit unintended clients (RFC 8725, section 3.1), or none.
    private static func checkKeys(_ values: EffectiveValues) throws(ConfigurationError) {
        for setting in [Setting.jwtSecret, .jwtPreviousSecrets] {
            guard let text = values.text(setting), text.contains("-----BEGIN") else { continue }
            throw ConfigurationError(
                message: "\(setting.key) (\(values[setting].origin)) is a PEM key, and a public key as an HMAC secret "
                    + "lets everybody sign; put it into a JWK Set and name that in jwks.file.")
        }
        let algorithms = values.words(.jwtAlgorithms)
        let hasSecret = values.text(.jwtSecret) != nil
        let hasSet = values.text(.jwksFile) != nil || values.text(.jwksURL) != nil
        if hasSecret, !hasSet, !algorithms.isEmpty, !algorithms.contains(where: { $0.hasPrefix("HS") }) {
            throw values.conflictError(
                .jwtAlgorithms, .jwtSecret, "allows nothing that can be verified with",
                "so nobody could come in; add HS256, or name a key set in jwks.file or jwks.url")
        }
    }
}

/// Settings that some commands require.
extension RoostConfiguration {
    /// - Parameter command: the name in the error: `roost serve`.
    package func requireDatabaseURL(for command: String) throws(ConfigurationError) -> String {
        try requireValue(.databaseURL, databaseURL, for: command)
    }

    /// - Parameter command: the name in the error: `roost serve`.
    package func requireJWTSecret(for command: String) throws(ConfigurationError) -> String {
        try requireValue(.jwtSecret, jwtSecret, for: command)
    }

    private func requireValue(
        _ setting: Setting, _ value: String?, for command: String
    ) throws(ConfigurationError) -> String {
        if let value { return value }
        throw ConfigurationError(
            message: "\(command) needs \(setting.key): set \(setting.environmentName), or \(setting.key) in the "
                + "configuration file, to \(setting.kind.expectation).")
    }

    /// Checks that there are keys to verify tokens with.
    ///
    /// - Parameter command: the name in the error: `roost serve`.
    package func requireKeys(for command: String) throws(ConfigurationError) {
        if jwtSecret != nil || jwksFile != nil || jwksURL != nil { return }
        throw ConfigurationError(
            message: "\(command) needs jwt.secret, jwks.file or jwks.url: set ROOST_JWT_SECRET to "
                + "\(Setting.jwtSecret.kind.expectation), or ROOST_JWKS_FILE or ROOST_JWKS_URL to where your identity "
                + "service's keys are.")
    }
}
