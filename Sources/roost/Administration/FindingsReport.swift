import ChangeFeed
import Wire

/// What `roost doctor` prints.
struct FindingsReport {
    let findings: [Finding]

    var errors: Int { findings.count { $0.severity == .error } }
    private var warnings: Int { findings.count { $0.severity == .warning } }

    var text: String {
        let lines = findings.map { finding in
            let mark =
                switch finding.severity {
                case .good: "ok     "
                case .warning: "warning"
                case .error: "ERROR  "
                }
            return "\(mark)  \(finding.subject): \(finding.message)"
        }
        return (lines + [summary]).joined(separator: "\n")
    }

    /// `{"findings": [{"severity", "subject", "message"}], "errors": …, "warnings": …}` on one line.
    var json: String {
        func json(_ text: String) -> String { String(decoding: JSONString.encode(text), as: UTF8.self) }
        let items = findings.map {
            "{\"severity\":\(json($0.severity.rawValue)),\"subject\":\(json($0.subject)),"
                + "\"message\":\(json($0.message))}"
        }
        return "{\"findings\":[\(items.joined(separator: ","))],\"errors\":\(errors),\"warnings\":\(warnings)}"
    }

    private var summary: String {
        if errors + warnings == 0 { return "Nothing is wrong." }
        func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
        return "\(count(errors, "error")), \(count(warnings, "warning"))."
    }
}
