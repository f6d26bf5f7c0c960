import Matching
import Testing
import Wire

@Suite struct RecordKeysTests {
    @Test func recordKeys() {
        let names: [Name] = ["a", "b\"\\", "c\n\u{1}", "é"]
        let keys = names.map(RecordKeys.encodeKey)
        let record = Array(#"{"a":{"x":[1,"}",{}]},"b\"\\":"\",","c\n\u0001":null,"é":-1.5e3}"#.utf8)
        record.withUnsafeBufferPointer {
            #expect(RecordKeys.matchesKeys($0, keys))
            #expect(!RecordKeys.matchesKeys($0, Array(keys.dropLast())))
            #expect(!RecordKeys.matchesKeys($0, keys + [[65]]))
            #expect(!RecordKeys.matchesKeys($0, keys.reversed()))
            #expect(RecordKeys.allKeys(of: $0) == Set(keys))
        }
        Array("{}".utf8).withUnsafeBufferPointer { #expect(RecordKeys.matchesKeys($0, [])) }
    }
}
