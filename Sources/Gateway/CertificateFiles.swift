import Glibc

/// Where a certificate and its key are: two PEM files, or one that holds both.
package struct CertificateFiles: Sendable {
    /// The server's own certificate first, then those that lead from it to a root.
    package let certificate: String
    package let key: String

    package init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }

    /// What tells one state of the files from the next, also where one was moved over the other.
    struct Version: Equatable {
        private let certificate: [Int]
        private let key: [Int]

        init(of files: CertificateFiles) {
            certificate = Self.marks(files.certificate)
            key = Self.marks(files.key)
        }

        /// Empty where there is no such file.
        private static func marks(_ path: String) -> [Int] {
            var status = stat()
            guard stat(path, &status) == 0 else { return [] }
            return [
                Int(bitPattern: UInt(status.st_dev)), Int(bitPattern: UInt(status.st_ino)), Int(status.st_size),
                status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
            ]
        }
    }

    var version: Version { Version(of: self) }
}
