import Logging

/// A line for the log.
struct Notice: Equatable {
    let level: Logger.Level
    let text: String
}
