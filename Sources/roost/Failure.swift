import Settings

/// An error that the command line can explain: one sentence that says what to do, and a status for scripts.
protocol Failure: Error {
    var sentence: String { get }
    var status: ExitStatus { get }
}

extension ConfigurationError: Failure {
    var sentence: String { message }
    var status: ExitStatus { .configuration }
}
