import Glibc

/// Takes secrets out of the command line as `ps` shows it to every user of the machine.
///
/// Linux shows the memory that the program was started with (proc(5), cmdline), so overwriting it there is enough. For
/// the instant between the start and this it was to be seen: the environment and the file are better places.
enum ProcessTitle {
    private static let secretFlags = ["--jwt-secret", "--database-url", "--token", "--url"]

    /// Call once, at the very start, before other threads could read the arguments.
    static func hideSecrets() {
        // Swift copies the arguments when they are first asked for; that has to happen before they are gone.
        _ = CommandLine.arguments
        var isSecret = false
        for index in 1..<max(1, Int(CommandLine.argc)) {
            guard let argument = CommandLine.unsafeArgv[index] else { continue }
            let text = String(cString: argument)
            if isSecret { overwrite(argument) }
            isSecret = !isSecret && secretFlags.contains(text)
            for flag in secretFlags where text.hasPrefix(flag + "=") { overwrite(argument + flag.utf8.count + 1) }
        }
    }

    private static func overwrite(_ text: UnsafeMutablePointer<CChar>) {
        memset(text, Int32(UInt8(ascii: "*")), strlen(text))
    }
}
