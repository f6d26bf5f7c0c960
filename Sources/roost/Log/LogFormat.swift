/// How a line of the log is written.
enum LogFormat: String, Sendable {
    case text, json
}
