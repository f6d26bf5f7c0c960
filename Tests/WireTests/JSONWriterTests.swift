import TestSupport
import Testing
import Wire

@Suite struct JSONWriterTests {
    @Test func commasComeByThemselves() {
        var writer = JSONWriter()
        writer.object { writer in
            writer.writeMember("text", "a\"b")
            writer.writeMember("number", -7)
            writer.writeMember("flag", true)
            writer.writeMember("texts", ["x", "y"])
            writer.writeMember("none", [])
            writer.writeMember("json", json: Array(#"{"kept" : 1.0}"#.utf8))
            writer.writeKey("null")
            writer.writeNull()
            writer.array("list", [1, 2]) { writer, number in writer.object { $0.writeMember("n", number) } }
            writer.object("empty") { _ in }
        }
        #expect(
            writer.text
                == #"{"text":"a\"b","number":-7,"flag":true,"texts":["x","y"],"none":[],"json":{"kept" : 1.0},"null":null,"#
                + #""list":[{"n":1},{"n":2}],"empty":{}}"#)
    }

    @Test(
        arguments: [
            (0, "0"), (1, "1"), (0.1, "0.1"), (-2.5, "-2.5"), (1e300, "1e+300"), (1e-7, "1e-07"), (.infinity, "null"),
        ] as [(Double, String)])
    func numbersAreWrittenExactly(_ number: Double, _ text: String) {
        var writer = JSONWriter()
        writer.writeValue(number)
        #expect(writer.text == text)
    }

    @Test func membersAreKeptToTheByte() throws {
        let text = #"{"\u0061":1.50,"a":[ 1 ],"é":"\/"}"#
        let copy = JSONWriter.object { writer in
            JSON(trusted: Array(text.utf8)[...]).forEachMember { writer.writeMember($0) }
        }
        #expect(copy == Array(text.utf8))
    }
}
