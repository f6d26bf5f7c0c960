import Glibc

/// Where everything goes that is not a result.
enum StandardError {
    /// Unbuffered. A standard error that takes nothing more leaves nobody to tell, so the outcome is not looked at.
    static func write(_ text: String) {
        var text = text
        text.withUTF8 { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
