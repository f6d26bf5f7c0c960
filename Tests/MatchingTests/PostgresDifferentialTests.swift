import Matching
import TestSupport
import Testing
import Wire

/// Compares the verdicts of the hub with what Postgres says, pair by pair. Needs a scratch database; run it with
/// `ROOST_TEST_DATABASE_URL=postgresql://… swift test --filter Differential`.
@Suite("Differential: verdicts and Postgres", .enabled(if: Psql.url != nil))
struct PostgresDifferentialTests {
    private static let rowCount = 60
    private static let table = Table(
        oid: 4711, schema: "roost \"diff\"", name: "things",
        columns: [Fixture.column("id", "int4", .decimal, key: true)] + DifferentialColumn.all.map(\.column))

    private let psql = Psql()

    @Test func verdictsAreThoseOfPostgres() throws {
        var random = SeededGenerator(seed: 42)
        try psql.run(setup(&random))
        defer { _ = try? psql.run("drop schema \(SQLText.identifier(Self.table.schema)) cascade") }
        let rows = try psql.run(
            "\(settings)select row_to_json(t)::text from \(SQLText.name(of: Self.table)) t order by id")
        try #require(rows.count == Self.rowCount)
        let conditions = self.conditions(&random)
        let truths = try psql.run(
            settings + conditions.map { "select attempt(\(literal(truthQuery($0))))" }.joined(separator: ";\n"))
        try #require(truths.count == conditions.count)

        var tally = Tally()
        let drafts = conditions.map { condition in
            Result { () throws(SubscriptionError) in
                // By way of the text, as a client would send it.
                try ChangeFilter(parsing: ChangeFilter(conditions: [condition]).description).bind(to: Self.table)
            }
        }
        let answers = try answers(to: drafts.flatMap { (try? $0.get())?.queries ?? [] })
        var unknown: [(condition: PostgresCondition, truth: Bool, label: String)] = []
        for (number, condition) in conditions.enumerated() {
            let truth = truths[number]
            guard let bound = try bound(drafts[number], answers) else {
                tally.noteRefusal(condition, isError: truth.hasPrefix("ERROR"), truth)
                continue
            }
            guard !truth.hasPrefix("ERROR") else {
                tally.complain("accepted, but Postgres says \(truth): \(condition)")
                continue
            }
            for (row, isTrue) in zip(rows, truth.utf8.map { $0 == UInt8(ascii: "t") }) {
                if isTrue, let fragments = bound.fragments { tally.note(fragments, in: row, condition) }
                var record = RowRecord(Fixture.change(row, table: Self.table))
                switch bound.evaluate(&record) {
                case .match: tally.note(isTrue, condition, row)
                case .noMatch: tally.note(!isTrue, condition, row)
                case .unknown: unknown.append((bound.question(about: &record), isTrue, "\(condition) on \(row)"))
                }
            }
        }
        try check(unknown, &tally)
        print("differential:", tally.summary)
        #expect(tally.complaints.isEmpty, "\(tally.complaints.prefix(40).joined(separator: "\n"))")
        #expect(tally.decided > 50_000)
        #expect(tally.asked > 10_000)
        #expect(tally.withFragments > 200)
    }

    private struct Tally {
        var decided = 0
        var asked = 0
        var refused = 0
        var withFragments = 0
        var complaints: [String] = []

        var summary: String {
            "\(decided) pairs decided, \(asked) asked, \(refused) filters refused, \(complaints.count) differences"
        }

        mutating func complain(_ text: String) { complaints.append(text) }

        mutating func note(_ isRight: Bool, _ condition: FilterCondition, _ row: String) {
            decided += 1
            if !isRight { complain("wrong verdict: \(condition) on \(row)") }
        }

        /// A row that meets a condition holds one of its fragments.
        mutating func note(_ fragments: [String], in row: String, _ condition: FilterCondition) {
            withFragments += 1
            if !fragments.contains(where: row.contains) { complain("none of \(fragments) for \(condition) in \(row)") }
        }

        mutating func noteRefusal(_ condition: FilterCondition, isError: Bool, _ truth: String) {
            refused += 1
            // A pattern that ends in a lone backslash fails only on the rows that reach it.
            if !isError, !condition.description.hasSuffix(#"\\""#) { complain("refused, but fine there: \(condition)") }
        }
    }

    /// The questions in batches, as the glue asks them.
    private func check(_ unknown: [(condition: PostgresCondition, truth: Bool, label: String)], _ tally: inout Tally)
        throws
    {
        for start in stride(from: 0, to: unknown.count, by: 2000) {
            let part = unknown[start..<min(start + 2000, unknown.count)]
            let batch = PostgresBatch(part.map(\.condition))
            let rows = try psql.run(settings + batch.sql).map { line in
                let bar = line.firstIndex(of: "|") ?? line.startIndex
                return (record: Int(line[..<bar]) ?? -1, answers: String(line[bar...]))
            }
            for (question, answer) in zip(part, batch.parseAnswers(rows)) {
                tally.asked += 1
                if answer != question.truth { tally.complain("wrong answer: \(question.label)") }
            }
        }
    }

    private func answers(to queries: [ValidationQuery]) throws -> [ValidationQuery: JSON] {
        let lines = try psql.run(
            settings
                + queries.map { "select attempt(\(literal("select (\($0.expression))::text")))" }.joined(
                    separator: ";\n"))
        try #require(lines.count == queries.count)
        var answers: [ValidationQuery: JSON] = [:]
        for (query, line) in zip(queries, lines) where !line.hasPrefix("ERROR") {
            answers[query] = try Fixture.json(line)
        }
        return answers
    }

    private func bound(
        _ draft: Result<FilterDraft, SubscriptionError>, _ answers: [ValidationQuery: JSON]
    ) throws -> BoundFilter? {
        guard let draft = try? draft.get() else { return nil }
        let known = draft.queries.compactMap { answers[$0] }
        guard known.count == draft.queries.count else { return nil }
        return try draft.makeFilter(answers: known)
    }

    // MARK: SQL of the test's own, so that it does not repeat the hub's mistakes

    private var settings: String {
        "set search_path = \(SQLText.identifier(Self.table.schema)), public; set timezone = 'Asia/Kolkata';\n"
    }

    private func literal(_ text: String) -> String {
        "E'" + text.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
    }

    private func setup(_ random: inout SeededGenerator) -> String {
        let schema = SQLText.identifier(Self.table.schema)
        var script = """
            drop schema if exists \(schema) cascade; create schema \(schema); \(settings)
            create extension if not exists citext schema public;
            create type roost_state as enum ('closed', 'open', 'a "b\\c');
            create domain roost_years as integer check (value >= 0);
            create collation roost_loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
            create function attempt(query text) returns text language plpgsql as $$
            declare answer text;
            begin
                execute query into answer;
                return coalesce(answer, 'NULL');
            exception when others then return 'ERROR ' || replace(sqlerrm, E'\\n', ' ');
            end $$;
            create table things (id integer primary key
            """
        for column in DifferentialColumn.all {
            script += ", \(SQLText.identifier(column.column.name)) \(column.definition)"
        }
        script += ");\n"
        for id in 1...Self.rowCount {
            let values = DifferentialColumn.all.map { column in
                Int.random(in: 0..<10, using: &random) == 0
                    ? "null" : literal(column.values.randomElement(using: &random) ?? "")
            }
            script += "insert into things values (\(id), \(values.joined(separator: ", ")));\n"
        }
        return script
    }

    private func conditions(_ random: inout SeededGenerator) -> [FilterCondition] {
        var conditions: [FilterCondition] = []
        for column in DifferentialColumn.all {
            let values = column.values + column.spellings
            let isText = ["text", "varchar", "name", "bpchar", "citext"].contains(column.column.type)
            for name in FilterOperator.allCases where name != .inList && name != .isKeyword {
                guard isText || !name.isPattern else { continue }
                for value in values where column.values.count < 12 || Int.random(in: 0..<2, using: &random) == 0 {
                    conditions.append(
                        FilterCondition(
                            column: column.column.name, isNegated: Int.random(in: 0..<4, using: &random) == 0,
                            test: .value(name, value)))
                }
            }
            for isNegated in [false, true] {
                for count in 0..<5 {
                    let members = (0..<count).map { _ in column.values.randomElement(using: &random) }
                    conditions.append(
                        FilterCondition(column: column.column.name, isNegated: isNegated, test: .list(members)))
                    conditions.append(
                        FilterCondition(
                            column: column.column.name, isNegated: isNegated,
                            test: .list(members + [nil, values.randomElement(using: &random)])))
                }
                for keyword in FilterCondition.Keyword.allCases where keyword == .null || column.column.type == "bool" {
                    conditions.append(
                        FilterCondition(column: column.column.name, isNegated: isNegated, test: .keyword(keyword)))
                }
            }
        }
        return conditions
    }

    private func truthQuery(_ condition: FilterCondition) -> String {
        let column = "t." + SQLText.identifier(condition.column)
        let symbols: [FilterOperator: String] = [
            .eq: "=", .neq: "!=", .lt: "<", .lte: "<=", .gt: ">", .gte: ">=", .like: "~~", .ilike: "~~*", .match: "~",
            .imatch: "~*", .isdistinct: "is distinct from",
        ]
        let test: String =
            switch condition.test {
            case .value(let name, let value): "\(column) \(symbols[name] ?? "") \(literal(value))"
            case .keyword(let keyword): "\(column) is \(keyword.rawValue)"
            case .list(let members) where members.isEmpty: "false"
            case .list(let members):
                "\(column) in (\(members.map { $0.map(literal) ?? "null" }.joined(separator: ", ")))"
            }
        let whole = condition.isNegated ? "not (\(test))" : test
        return "select string_agg(case when \(whole) then 't' else 'f' end, '' order by t.id) from things t"
    }
}
