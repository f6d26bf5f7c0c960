import Glibc

/// A JWK Set in a file, which may change.
struct KeyFile {
    let path: String

    /// What tells one version of the file from the next, also where one was moved over the other.
    struct Version: Equatable {
        let inode: UInt
        let size: Int
        let seconds: Int
        let nanoseconds: Int
    }

    /// Nil where there is no such file.
    var version: Version? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return Version(
            inode: UInt(status.st_ino), size: Int(status.st_size), seconds: status.st_mtim.tv_sec,
            nanoseconds: status.st_mtim.tv_nsec)
    }

    func read() throws(KeyProblem) -> KeySet {
        do {
            let set = try KeySet(parsing: bytes())
            if set.keys.isEmpty { throw KeyProblem("it has no keys") }
            return set
        } catch {
            throw KeyProblem("The key file \(path) cannot be used: \(error); correct it, or the path in jwks.file")
        }
    }

    private func bytes() throws(KeyProblem) -> [UInt8] {
        guard let file = fopen(path, "rbe") else { throw KeyProblem(Self.reason(errno)) }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: KeySet.maximumBytes + 1)
        let count = fread(&bytes, 1, bytes.count, file)
        guard ferror(file) == 0 else { throw KeyProblem(Self.reason(errno)) }
        guard count <= KeySet.maximumBytes else { throw KeyProblem("it is longer than \(KeySet.maximumBytes) bytes") }
        return Array(bytes.prefix(count))
    }

    private static func reason(_ number: Int32) -> String { String(cString: strerror(number)).lowercased() }
}
