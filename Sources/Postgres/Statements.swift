/// The statements of one `.sql` file, by their names.
///
/// Such a file holds the SQL of one job: in front what holds for all of it (invariants, the order in which locks are taken), then the
/// statements, each below a line `-- name: TakeAlerts`. A room names what is in one by an enumeration:
///
///     enum AlertSQL: String, NamedStatement {
///         case takeAlerts, settleAlerts
///         static let file = StatementFile("Alerts.sql")
///     }
///
/// It is read once, and a test of every target holds the enumeration to the file (`problems`).
package struct StatementFile: Sendable {
    /// By names as Swift writes them: the first letter is small.
    private let texts: [String: String]
    /// Names that stand there twice, or with nothing below them.
    private let faults: [String]

    private static let mark = "-- name: "

    /// - Parameter name: of an embedded file.
    package init(_ name: String) {
        self.init(text: SQLFile.text(name))
    }

    package init(text: String) {
        var texts: [String: String] = [:]
        var faults: [String] = []
        var name: String?
        var lines: [Substring] = []
        func finish() {
            guard let name else { return }
            while lines.last?.allSatisfy(\.isWhitespace) ?? false { lines.removeLast() }
            if lines.isEmpty || texts[name] != nil { faults.append(name) }
            texts[name] = lines.joined(separator: "\n")
        }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix(Self.mark) {
                finish()
                let written = line.dropFirst(Self.mark.count)
                name = written.prefix(1).lowercased() + written.dropFirst()
                lines = []
            } else {
                lines.append(line)
            }
        }
        finish()
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

/// A statement that stands in a `.sql` file below its name.
package protocol NamedStatement: CaseIterable, RawRepresentable<String>, Sendable {
    static var file: StatementFile { get }
}

extension NamedStatement {
    package var text: String { Self.file[rawValue] }

    /// How the cases differ from what is in the file: nothing, or a test fails.
    package static var problems: [String] {
        file.problems(where: Set(allCases.map(\.rawValue))).map { "\(Self.self): \($0)" }
    }
}

extension PostgresConnection {
    /// One statement with text parameters; waits for its whole result.
    package func query(
        _ statement: some NamedStatement, _ parameters: [String?] = [], within limit: Duration = .seconds(10)
    ) throws -> QueryResult {
        try query(statement.text, parameters, within: limit)
    }

    /// A script of several statements without parameters; the last result counts.
    @discardableResult
    package func run(_ script: some NamedStatement, within limit: Duration = .seconds(10)) throws -> QueryResult {
        try run(script.text, within: limit)
    }
}

/// What every session runs, and what the process asks about sessions.
package enum SessionSQL: String, NamedStatement {
    case setUp, runningBackends
    package static let file = StatementFile("Sessions.sql")
}
