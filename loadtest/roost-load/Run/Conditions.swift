import Glibc

/// What a run was made on.
enum Conditions {
    static var now: [RunRecord.Fact] {
        var facts = [("cores", String(sysconf(Int32(_SC_NPROCESSORS_ONLN))))]
        if let kernel = ProcFile.read("/proc/sys/kernel/osrelease") { facts.append(("Linux", trimmed(kernel))) }
        if let model = ProcFile.read("/proc/cpuinfo")?.split(separator: "\n").first(where: {
            $0.hasPrefix("model name")
        }) {
            facts.append(("processor", trimmed(String(model.drop { $0 != ":" }.dropFirst()))))
        }
        if let load = ProcFile.read("/proc/loadavg") {
            facts.append(("load average at the end", load.split(separator: " ").prefix(3).joined(separator: " ")))
        }
        return facts.map { RunRecord.Fact(name: $0, value: $1) }
    }

    private static func trimmed(_ text: String) -> String {
        var text = text[...]
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text.drop { $0.isWhitespace })
    }
}
