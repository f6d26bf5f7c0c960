import Glibc

/// The most allocations that each operation may make, as a file of lines `name number`, `#` before a comment.
struct Thresholds {
    private let most: [String: Double]
    /// The lines before the first operation, which say what the file is.
    private let preface: [Substring]

    init(parsing text: String, path: String) throws {
        var most: [String: Double] = [:]
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        for (number, line) in lines.enumerated() {
            let words = line.prefix { $0 != "#" }.split(whereSeparator: \.isWhitespace)
            if words.isEmpty { continue }
            guard words.count == 2, let value = Double(words[1]), value >= 0 else {
                throw MicroFailure("Line \(number + 1) of \(path) must be an operation and a number: \(line)")
            }
            guard most.updateValue(value, forKey: String(words[0])) == nil else {
                throw MicroFailure(
                    "Line \(number + 1) of \(path) names \(words[0]) again; remove one of the two lines.")
            }
        }
        self.most = most
        preface = Array(lines.prefix { $0.hasPrefix("#") })
    }

    /// A sentence for each operation that allocates more than it may, has no threshold, or is no more.
    ///
    /// - Parameter isWanted: which of the file's lines are about the figures.
    func faults(in figures: [OperationCost], where isWanted: (String) -> Bool) -> [String] {
        let measured = Set(figures.map(\.name))
        let wrong = figures.compactMap { figure -> String? in
            let count = FixedText.of(figure.allocations, 2)
            guard let limit = most[figure.name] else {
                return "\(figure.name) has no threshold: it allocates \(count) times; add it with --record."
            }
            guard figure.allocations > limit else { return nil }
            return "\(figure.name) allocates \(count) times, \(FixedText.of(limit, 2)) are allowed."
        }
        let stale = most.keys.filter { isWanted($0) && !measured.contains($0) }.sorted()
        return wrong + stale.map { "\($0) has a threshold and is not measured: remove its line." }
    }

    /// Operations that have become better than they must be.
    func improved(in figures: [OperationCost]) -> [String] {
        figures.filter { figure in most[figure.name].map { figure.allocations < $0 } ?? false }.map(\.name)
    }

    /// The file with the figures as thresholds.
    func renewed(by figures: [OperationCost]) -> String {
        let width = figures.map(\.name.count).max() ?? 0
        let lines = figures.sorted { $0.name < $1.name }.map { figure in
            figure.name + String(repeating: " ", count: width + 2 - figure.name.count)
                + FixedText.of(figure.allocations, 2)
        }
        return (preface.map(String.init) + lines).joined(separator: "\n") + "\n"
    }
}

/// A small file that is read and written as a whole.
struct TextFile {
    let path: String

    func read() throws -> String {
        guard let file = fopen(path, "r") else { throw failure("read") }
        defer { fclose(file) }
        var text: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65_536)
        while case let count = fread(&part, 1, part.count, file), count > 0 { text += part[..<count] }
        guard ferror(file) == 0 else { throw failure("read") }
        return String(decoding: text, as: UTF8.self)
    }

    func write(_ text: String) throws {
        guard let file = fopen(path, "w") else { throw failure("write") }
        let isWritten = fputs(text, file) >= 0
        guard fclose(file) == 0, isWritten else { throw failure("write") }
    }

    private func failure(_ doing: String) -> MicroFailure {
        MicroFailure(
            "Cannot \(doing) \(path): \(String(cString: strerror(errno))); run from the repository's root, or name it by "
                + "--thresholds.")
    }
}
