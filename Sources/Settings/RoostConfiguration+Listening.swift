extension RoostConfiguration {
    /// A path that the kernel cannot take.
    static func checkListening(_ values: EffectiveValues) throws(ConfigurationError) {
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
