/// Whether a run fulfils what was expected of it and what is expected of every run.
struct Outcome {
    enum Verdict { case passed, failed, open }

    let verdict: Verdict
    let sentence: String

    init(of record: RunRecord) {
        let missed = record.expectations.count { !$0.holds }
        let checks = record.figures.filter(\.isCheck)
        let broken = checks.count { $0.value != 0 }
        verdict =
            missed + broken > 0 ? .failed : record.expectations.isEmpty && checks.isEmpty ? .open : .passed
        var parts: [String] = []
        if !checks.isEmpty { parts.append(Self.part(of: checks.count, "check", "fails", "fail", broken)) }
        if !record.expectations.isEmpty {
            parts.append(Self.part(of: record.expectations.count, "expectation", "is missed", "are missed", missed))
        }
        sentence = parts.isEmpty ? "Nothing was checked or expected." : parts.joined(separator: ", ") + "."
    }

    private static func part(of all: Int, _ noun: String, _ one: String, _ many: String, _ bad: Int) -> String {
        if bad > 0 { return "\(bad) of \(all) \(noun)s \(bad == 1 ? one : many)" }
        return all == 1 ? "1 \(noun) holds" : "\(all) \(noun)s hold"
    }
}
