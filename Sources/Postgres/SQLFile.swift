import CSQLFiles

/// The rooms' `.sql` files, embedded in the binary (`CSQLFiles`).
package enum SQLFile {
    private static let texts: [String: String] = {
        var count = 0
        let files = UnsafeBufferPointer(start: roost_sql_files(&count), count: count)
        return Dictionary(
            uniqueKeysWithValues: files.map { file in
                let text = UnsafeBufferPointer(start: file.text, count: file.length)
                return (String(cString: file.name), String(decoding: text, as: UTF8.self))
            })
    }()

    /// Every file by its name.
    package static var all: [String: String] { texts }

    /// - Parameter name: for example `Alerts.sql`. A test looks up every name that the rooms use.
    package static func text(_ name: String) -> String {
        guard let text = texts[name] else { preconditionFailure("Sources/CSQLFiles embeds no \(name)") }
        return text
    }
}
