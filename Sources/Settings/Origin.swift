/// Where a value came from, strongest first: a flag, an environment variable, the file, or nobody.
package enum Origin: Sendable, Equatable, CustomStringConvertible {
    case flag(String)
    case variable(String)
    /// A line is counted from 1; nil where it was not found.
    case file(String, line: Int?)
    case standard

    /// As errors and `roost config print` say it.
    package var description: String {
        switch self {
        case .flag(let name), .variable(let name): name
        case .file(let path, let line?): "\(path):\(line)"
        case .file(let path, nil): path
        case .standard: "default"
        }
    }

    /// How an error begins that is about a setting's value: in a file the place and the key; a flag or a variable is both.
    func subject(_ setting: Setting) -> String {
        switch self {
        case .flag(let name), .variable(let name): name
        case .file: "\(self): \(setting.key)"
        case .standard: setting.key
        }
    }
}
