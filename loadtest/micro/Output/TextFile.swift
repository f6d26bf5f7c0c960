import Glibc

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
