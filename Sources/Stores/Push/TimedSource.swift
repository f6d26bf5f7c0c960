package import Wire

/// A column of `alerts.timed`: its rows are pushed at the time that it contains.
package struct TimedSource: Sendable, Equatable {
    package let schema: Name
    package let table: Name
    package let column: Name
    /// An SQL condition: rows that meet it are not pushed; nil if every row is.
    package let unless: String?

    package init(schema: Name, table: Name, column: Name, unless: String? = nil) {
        self.schema = schema
        self.table = table
        self.column = column
        self.unless = unless
    }

    /// The name in `roost.timed_source`, in logs and in `roost doctor`.
    package var name: Name { Name("\(schema).\(table).\(column)") }

    /// The table, in the form of `roost watch`.
    package var tableName: String { "\(schema).\(table)" }

    package func isNamed(_ other: Name) -> Bool { name == other }

    /// Whether this is a column of a table.
    package func isOf(_ schema: Name, _ table: Name) -> Bool { self.schema == schema && self.table == table }
}

extension TimedSource {
    /// Reads the setting `alerts.timed`, with semicolons or line breaks between its entries:
    /// `public.reminders.reminder_time unless done_at is not null; public.tasks.deadline`.
    ///
    /// - Throws: `TimedSourceError` for the first invalid entry.
    package static func list(_ text: String) throws(TimedSourceError) -> [TimedSource] {
        var sources: [TimedSource] = []
        for entry in entries(text) {
            let source = try TimedSource(entry)
            guard !sources.contains(where: { $0.name == source.name }) else {
                throw TimedSourceError(entry, "it stands there twice; take one away")
            }
            guard sources.count < mostSources else {
                throw TimedSourceError(entry, "there are more than \(mostSources) columns; take some away")
            }
            sources.append(source)
        }
        return sources
    }

    /// Each costs a query a second.
    private static let mostSources = 50

    /// Returns the texts between semicolons and line breaks, except for those in SQL's quotes.
    private static func entries(_ text: String) -> [Substring] {
        var quote: Character?
        return text.split { character in
            if let open = quote {
                if character == open { quote = nil }
                return false
            }
            if character == "'" || character == "\"" { quote = character }
            return character == ";" || character.isNewline
        }
        .map(trimmed).filter { !$0.isEmpty }
    }

    private init(_ entry: Substring) throws(TimedSourceError) {
        let place = entry.prefix { !$0.isWhitespace }
        let parts = place.split(separator: ".", omittingEmptySubsequences: false).map { Name($0) }
        guard parts.count == 3, !parts.contains(where: \.isEmpty) else {
            throw TimedSourceError(entry, "write SCHEMA.TABLE.COLUMN, and behind it perhaps unless CONDITION")
        }
        let rest = Self.trimmed(entry[place.endIndex...])
        guard rest.isEmpty || rest.prefix(6).lowercased() == "unless" else {
            throw TimedSourceError(entry, "behind the column there may be unless CONDITION and nothing else")
        }
        let condition = Self.trimmed(rest.dropFirst(6))
        guard rest.isEmpty || (!condition.isEmpty && rest.dropFirst(6).first?.isLetter == false) else {
            throw TimedSourceError(entry, "behind unless there is no condition; write one, such as done_at is not null")
        }
        self.init(
            schema: parts[0], table: parts[1], column: parts[2], unless: condition.isEmpty ? nil : String(condition))
    }

    private static func trimmed(_ text: Substring) -> Substring {
        guard let last = text.lastIndex(where: { !$0.isWhitespace }) else { return "" }
        return text[...last].drop(while: \.isWhitespace)
    }
}

/// An entry of `alerts.timed` that cannot work.
package struct TimedSourceError: Error, Equatable, CustomStringConvertible {
    /// The entry in quotes, then a colon and the problem with its remedy, without a full stop.
    package let description: String

    init(_ entry: Substring, _ problem: String) { description = "'\(entry.prefix(80))': \(problem)" }
}

/// A problem that keeps the rows of a column from being pushed, or makes the queries expensive.
package struct TimedProblem: Sendable, Equatable {
    /// Whether nothing of the column is pushed.
    package let isFatal: Bool
    /// One sentence with the remedy.
    package let sentence: String

    init(_ sentence: String, isFatal: Bool = true) {
        self.sentence = sentence
        self.isFatal = isFatal
    }
}
