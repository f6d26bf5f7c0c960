/// The statements of one `.sql` file, by their names.
///
/// Such a file holds the SQL of one job: a header with what applies to all of it (invariants, the order in which locks are
/// taken), then the statements, each below a line `-- name: TakeAlerts`. A room names the statements of a file in an
/// enumeration:
///
///     enum AlertSQL: String, NamedStatement {
///         case takeAlerts, settleAlerts
///         static let file = StatementFile("Alerts.sql")
///     }
///
/// The file is read once, and each target has a test that compares the enumeration with the file (`problems`).
package struct StatementFile: Sendable {
    /// By names in Swift's spelling, with a small first letter.
    private let texts: [String: String]
    /// Names that occur twice, or without a statement.
    private let faults: [String]

    private static let mark = "-- name: "

    /// - Parameter name: the name of an embedded file.
    package init(_ name: String) {
        self.init(text: SQLFile.text(name))
    }

    package init(text: String) {
        var texts: [String: String] = [:]
        var faults: [String] = []
        var name: String?
        var lines: [Substring] = []
        func finishStatement() {
            guard let name else { return }
            while lines.last?.allSatisfy(\.isWhitespace) ?? false { lines.removeLast() }
            if lines.isEmpty || texts[name] != nil { faults.append(name) }
            texts[name] = lines.joined(separator: "\n")
        }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix(Self.mark) {
                finishStatement()
                let written = line.dropFirst(Self.mark.count)
                name = written.prefix(1).lowercased() + written.dropFirst()
                lines = []
            } else {
                lines.append(line)
            }
        }
        finishStatement()
        self.texts = texts
        self.faults = faults
    }

    fileprivate subscript(_ name: String) -> String {
        guard let text = texts[name] else { preconditionFailure("no statement is named \(name)") }
        return text
    }

    fileprivate func problems(where names: Set<String>) -> [String] {
        faults.map { "\($0) stands there twice, or is empty" }
            + names.subtracting(texts.keys).sorted().map { "\($0) is missing in the file" }
            + Set(texts.keys).subtracting(names).sorted().map { "nobody uses \($0)" }
    }
}

/// A statement in a `.sql` file, by its name.
package protocol NamedStatement: CaseIterable, RawRepresentable<String>, Sendable {
    static var file: StatementFile { get }
}

extension NamedStatement {
    package var text: String { Self.file[rawValue] }

    /// Differences between the cases and the file; a test fails if there are any.
    package static var problems: [String] {
        file.problems(where: Set(allCases.map(\.rawValue))).map { "\(Self.self): \($0)" }
    }
}

extension PostgresConnection {
    /// Runs one statement with text parameters, and waits for its whole result.
    package func query(
        _ statement: some NamedStatement, _ parameters: [String?] = [], within limit: Duration = .seconds(10)
    ) throws -> QueryResult {
        try query(statement.text, parameters, within: limit)
    }

    /// Runs a script of several statements without parameters, and returns the last result.
    @discardableResult
    package func runScript(_ script: some NamedStatement, within limit: Duration = .seconds(10)) throws -> QueryResult {
        try runScript(script.text, within: limit)
    }
}

/// The setup of every session, and the process's queries about sessions.
package enum SessionSQL: String, NamedStatement {
    case setUp, runningBackends
    package static let file = StatementFile("Sessions.sql")
}
