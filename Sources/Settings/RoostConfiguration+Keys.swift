extension RoostConfiguration {
    /// Keys that would let in others than those who were meant (RFC 8725, section 3.1), or nobody.
    static func checkKeys(_ values: EffectiveValues) throws(ConfigurationError) {
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
            throw values.conflict(
                .jwtAlgorithms, .jwtSecret, "allows nothing that can be verified with",
                "so nobody could come in; add HS256, or name a key set in jwks.file or jwks.url")
        }
    }

    /// Checks that tokens can be verified with something.
    ///
    /// - Parameter command: as the error names it: `roost serve`.
    package func requireKeys(for command: String) throws(ConfigurationError) {
        if jwtSecret != nil || jwksFile != nil || jwksURL != nil { return }
        throw ConfigurationError(
            message: "\(command) needs jwt.secret, jwks.file or jwks.url: set ROOST_JWT_SECRET to "
                + "\(Setting.jwtSecret.kind.expectation), or ROOST_JWKS_FILE or ROOST_JWKS_URL to where your identity "
                + "service's keys are.")
    }
}
