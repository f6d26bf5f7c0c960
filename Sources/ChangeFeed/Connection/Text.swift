extension String {
    /// Without the line break and spaces libpq ends its messages with, and on one line.
    var trimmed: String {
        split(whereSeparator: \.isNewline).map { line in
            String(line.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
        }.joined(separator: "; ")
    }
}
