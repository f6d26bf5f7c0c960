import Glibc

/// Why a test could not be carried out, as one sentence.
struct LoadFailure: Error {
    let sentence: String

    init(_ sentence: String) { self.sentence = sentence }

    /// A system call that failed, by `errno`.
    static func system(_ doing: String, _ code: Int32 = errno) -> LoadFailure {
        LoadFailure("\(doing) failed: \(String(cString: strerror(code))).")
    }
}
