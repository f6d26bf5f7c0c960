/// Where a value came from, strongest first: a flag, an environment variable, the file, or nobody.
package enum Origin: Sendable, Equatable, CustomStringConvertible {
    case flag(String)
    case variable(String)
    case file(String)
    case standard

    /// As errors and `roost config print` say it.
    package var description: String {
        switch self {
        case .flag(let name), .variable(let name): name
        case .file(let path): path
        case .standard: "default"
        }
    }
}
