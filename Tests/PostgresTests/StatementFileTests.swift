import Postgres
import Testing

@Suite struct StatementFileTests {
    private enum Sample: String, NamedStatement {
        case takeOne, script
        static let file = StatementFile(
            text: """
                -- What holds for all: no locks.

                -- name: TakeOne
                -- Of these ($1) the first.
                -- Locks: none.
                select $1


                -- name: Script
                begin;
                commit;

                """)
    }

    private enum Other: String, NamedStatement {
        case known, missing
        static let file = StatementFile(
            text: "-- name: Known\nselect 1\n-- name: Known\nselect 2\n-- name: Unused\nselect 3\n-- name: Empty\n\n")
    }

    @Test func aStatementIsWhatStandsBelowItsName() {
        #expect(Sample.takeOne.text == "-- Of these ($1) the first.\n-- Locks: none.\nselect $1")
        #expect(Sample.script.text == "begin;\ncommit;")
        #expect(Sample.problems == [])
    }

    @Test func whatDoesNotFitIsSaid() {
        #expect(
            Other.problems == [
                "Other: known stands there twice, or is empty", "Other: empty stands there twice, or is empty",
                "Other: missing is missing in the file", "Other: nobody uses empty", "Other: nobody uses unused",
            ])
    }

    @Test func theFileOfTheSessionsFits() { #expect(SessionSQL.problems == []) }
}

@Suite struct TextArrayTests {
    @Test func anythingCanBeAnElement() {
        var array = TextArray()
        array.append("a \"b\" \\c{},".utf8)
        array.append(nil as [UInt8]?)
        array.append(7)
        array.append(true)
        #expect(array.literal == #"{"a \"b\" \\c{},",NULL,7,t}"#)
        #expect(TextArray().literal == "{}")
    }
}
