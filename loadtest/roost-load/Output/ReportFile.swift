import Glibc

/// A file that a report goes to.
struct ReportFile {
    let path: String

    /// Asked before a run: half an hour of measurements is not lost to a folder that does not exist.
    func checkIsWritable() throws {
        if access(path, F_OK) == 0 {
            guard access(path, W_OK) == 0 else { throw failure(errno) }
            var status = stat()
            guard stat(path, &status) == 0 else { throw failure(errno) }
            guard status.st_mode & S_IFMT != S_IFDIR else { throw failure(EISDIR) }
            return
        }
        let folder = path.lastIndex(of: "/").map { path[...$0] } ?? "."
        guard access(String(folder), W_OK | X_OK) == 0 else { throw failure(errno) }
    }

    func write(_ text: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw failure(errno) }
        let outcome = Self.write(text, to: descriptor)
        guard close(descriptor) == 0 else { throw failure(errno) }
        if let outcome { throw failure(outcome) }
    }

    /// The errno of the write that failed.
    private static func write(_ text: String, to descriptor: Int32) -> Int32? {
        var text = text
        return text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while !rest.isEmpty {
                let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
                if count < 0, errno != EINTR { return errno }
                rest = UnsafeRawBufferPointer(rebasing: rest[max(0, count)...])
            }
            return nil
        }
    }

    private func failure(_ code: Int32) -> LoadFailure {
        let reason = String(cString: strerror(code))
        return LoadFailure("\(path) cannot be written (\(reason)): name a file in a folder that you may write to.")
    }
}
