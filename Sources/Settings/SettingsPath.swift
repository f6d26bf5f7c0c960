import FoundationEssentials
import Glibc

/// Which file holds the configuration, and whether it is one that can be read.
enum SettingsPath {
    /// More is no configuration.
    private static let mostBytes = 1_048_576

    /// - Parameters:
    ///   - flag: what `--config` names. Nil: what `variable` names, else the first of `files` that exists.
    ///   - variable: what `ROOST_CONFIG` names.
    /// - Returns: nil where nobody named one and none of `files` exists.
    static func find(
        flag: String?, variable: String?, files: [String]
    ) throws(ConfigurationError) -> String? {
        let named = flag.map { ($0, "--config") } ?? variable.map { ($0, Setting.fileVariable) }
        guard let path = named?.0 ?? files.first(where: FileManager.default.fileExists) else { return nil }
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw ConfigurationError(
                message: "\(named?.1 ?? "the standard place") names \(path), which \(reason(errno)).")
        }
        try check(path, status)
        return path
    }

    private static func check(_ path: String, _ status: stat) throws(ConfigurationError) {
        switch status.st_mode & S_IFMT {
        case S_IFDIR: throw ConfigurationError(message: "\(path) is a folder; name a YAML file.")
        case S_IFREG: break
        default: throw ConfigurationError(message: "\(path) is no file that can be read to its end; name a YAML file.")
        }
        guard status.st_size <= mostBytes else {
            throw ConfigurationError(message: "\(path) is longer than 1 MiB; name a YAML file.")
        }
        guard access(path, R_OK) == 0 else {
            throw ConfigurationError(message: "\(path) may not be read by this user; change its owner or its mode.")
        }
    }

    private static func reason(_ number: Int32) -> String {
        switch number {
        case ENOENT: "does not exist"
        case EACCES: "is in a folder that this user may not enter"
        default: "cannot be opened (\(String(cString: strerror(number))))"
        }
    }
}
