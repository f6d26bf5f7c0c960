extension RoostConfiguration {
    /// A certificate without its key, and a path that the kernel cannot take.
    static func checkListening(_ values: EffectiveValues) throws(ConfigurationError) {
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

    /// unix(7): 108 with the zero at the end.
    private static let longestSocketPath = 107
}
