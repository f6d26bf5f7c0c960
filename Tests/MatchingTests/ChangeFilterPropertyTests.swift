import Matching
import TestSupport
import Testing

@Suite("Properties of filters")
struct ChangeFilterPropertyTests {
    private static let pieces = [
        "a", "id", "=", "eq", "in", "is", "not.", ".", ",", "(", ")", "\"", "\\", " ", "null", "true", "é", "🦆", "like",
        "%",
        "=eq.", "=in.(", "=is.null", "=not.gt.", "\t", "\u{A0}", "5", "-", "{", "}", "'", "\0", "\u{301}", "NULL",
        "match",
    ]

    private func random(_ random: inout SeededGenerator) -> String {
        (0..<Int.random(in: 0...14, using: &random)).map { _ in Self.pieces.randomElement(using: &random) ?? "" }
            .joined()
    }

    /// 135,000 texts from pieces of the grammar and 67,000 mutations of good filters: none may crash, and what is
    /// accepted has a canonical text that means the same and is its own canonical text.
    @Test func whatIsAcceptedHasACanonicalText() throws {
        var random = SeededGenerator(seed: 2026)
        let good = Array(#"a=eq.1,b=not.in.(x,"y,z",null),c=like.%q_"\,d=is.null,e=isdistinct."a\"b\\c""#.utf8)
        var accepted = 0
        for round in 0..<202_000 {
            var text = self.random(&random)
            if round % 3 == 0 {
                var bytes = good
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    let at = Int.random(in: 0..<bytes.count, using: &random)
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: bytes.remove(at: at)
                    case 1: bytes[at] = UInt8.random(in: 0...255, using: &random)
                    default: bytes.insert(bytes[Int.random(in: 0..<bytes.count, using: &random)], at: at)
                    }
                }
                text = String(decoding: bytes, as: UTF8.self)
            }
            guard let filter = try? ChangeFilter(parsing: text) else { continue }
            accepted += filter.conditions.isEmpty ? 0 : 1
            let canonical = filter.description
            guard let again = try? ChangeFilter(parsing: canonical), again == filter,
                Array(again.description.utf8) == Array(canonical.utf8)
            else {
                Issue.record("\(text.debugDescription) → \(canonical.debugDescription)")
                return
            }
        }
        // A test that accepts nothing shows nothing.
        #expect(accepted > 14_000)
    }

    @Test func everyFilterThatCanBeBuiltCanBeWrittenAndRead() throws {
        var random = SeededGenerator(seed: 7)
        func text() -> String {
            (0..<Int.random(in: 0...6, using: &random)).map { _ in
                Self.pieces.randomElement(using: &random) ?? ""
            }.joined().replacing("\0", with: "")
        }
        // What a regular expression may be has tests of its own.
        let others: [FilterOperator] = [.inList, .isKeyword, .match, .imatch]
        let names = FilterOperator.allCases.filter { !others.contains($0) }
        for _ in 0..<20_000 {
            let conditions = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                let test: FilterCondition.Test =
                    switch Int.random(in: 0..<4, using: &random) {
                    case 0: .keyword(FilterCondition.Keyword.allCases.randomElement(using: &random) ?? .null)
                    case 1:
                        .list(
                            (0..<Int.random(in: 0...4, using: &random)).map { _ in
                                Bool.random(using: &random) ? text() : nil
                            })
                    default: .value(names.randomElement(using: &random) ?? .eq, text())
                    }
                return FilterCondition(column: "column one", isNegated: Bool.random(using: &random), test: test)
            }
            let filter = ChangeFilter(conditions: conditions)
            guard let read = try? ChangeFilter(parsing: filter.description), read == filter else {
                Issue.record("\(filter.description.debugDescription)")
                return
            }
        }
    }
}
