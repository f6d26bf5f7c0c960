import Postgres
package import Stores

/// Checks of rows that are pushed at a time that they contain.
extension Doctor {
    /// Checks whether the columns of `alerts.timed` can be queried, and reports how recent pushes went. Never throws:
    /// failures become findings.
    package static func examine(timed sources: [TimedSource], conninfo: String) -> [Finding] {
        guard !sources.isEmpty else { return [] }
        do {
            let examination = TimedExamination(try AdminSession.openConnection(conninfo))
            let examined = try examination.examine(sources)
            return try zip(sources, examined).flatMap { source, examined in
                var findings = examined.problems.map {
                    Finding($0.isFatal ? .error : .warning, Self.timed, $0.sentence)
                }
                if findings.isEmpty { findings = [Finding(.good, Self.timed, "\(source.name) fits the database.")] }
                return try findings + historyFindings(of: source, examination)
            }
        } catch {
            return [Finding(.error, timed, "The check failed: \(error).")]
        }
    }

    private static let timed = "timed rows"
    /// In seconds. Hubs look once a second.
    private static let longestSilence: Int64 = 60

    private static func historyFindings(of source: TimedSource, _ examination: TimedExamination) throws -> [Finding] {
        guard let (silence, late, most) = try examination.history(of: source) else {
            return [
                Finding(
                    .warning, timed,
                    "No hub has looked at \(source.name) yet; what was due before one does is not pushed. Start one with this "
                        + "configuration.")
            ]
        }
        var findings: [Finding] = []
        if silence > longestSilence {
            findings.append(
                Finding(
                    .warning, timed,
                    "No hub has looked at \(source.name) for \(silence) s, so what is due there waits; start one, or see what its "
                        + "log says."))
        }
        if late > 0 {
            findings.append(
                Finding(
                    .warning, timed,
                    "\(late) rows of \(source.name) were pushed late within the last day, by up to \(most) s: no hub could send "
                        + "when they were due, or they were written only afterwards."))
        }
        return findings
    }
}
