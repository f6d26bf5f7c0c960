/// Something is wrong with the configuration: one sentence that names the place, the key and what to do.
///
/// The command line ends with status 78 (`EX_CONFIG`).
package struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    package let message: String

    package init(message: String) {
        self.message = message
    }

    package var description: String { message }
}
