import Matching
import Testing
import Wire

@Suite struct RecordKeysTests {
    @Test func recordKeys() {
        let names: [Name] = ["a", "b\"\\", "c\n\u{1}", "é"]
        let keys = names.map(RecordKeys.encoded)
        let record = Array(#"{"a":{"x":[1,"}",{}]},"b\"\\":"\",","c\n\u0001":null,"é":-1.5e3}"#.utf8)
        record.withUnsafeBufferPointer {
            #expect(RecordKeys.matches($0, keys))
            #expect(!RecordKeys.matches($0, Array(keys.dropLast())))
            #expect(!RecordKeys.matches($0, keys + [[65]]))
            #expect(!RecordKeys.matches($0, keys.reversed()))
            #expect(RecordKeys.all(of: $0) == Set(keys))
        }
        Array("{}".utf8).withUnsafeBufferPointer { #expect(RecordKeys.matches($0, [])) }
    }
}
