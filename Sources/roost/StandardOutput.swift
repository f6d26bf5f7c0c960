import Glibc

/// Lines that scripts wait for: written at once, also into a pipe, where `print` would keep them in a buffer.
enum StandardOutput {
    static func line(_ text: String) {
        var text = text + "\n"
        text.withUTF8 { _ = Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }
}
