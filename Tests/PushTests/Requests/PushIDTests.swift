import Testing

@testable import Push

struct PushIDTests {
    @Test func isALowerCaseUUID() {
        let form = /[0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/
        let ids = (0..<100).map { _ in PushID() } + [PushID(named: "message 7 to phone 8")]
        #expect(ids.allSatisfy { $0.text.wholeMatch(of: form) != nil })
        #expect(Set(ids).count == 101)
    }

    @Test func isTheSameForTheSameName() {
        #expect(PushID(named: "a") == PushID(named: "a"))
        #expect(PushID(named: "a") != PushID(named: "b"))
    }

    @Test func takesUUIDsOnly() {
        #expect(PushID("EABEAE54-14A8-11E5-B60B-1697F925EC7B")?.text == "eabeae54-14a8-11e5-b60b-1697f925ec7b")
        for bad in ["", "x", "eabeae54-14a8-11e5-b60b-1697f925ec7", "eabeae5414a811e5b60b1697f925ec7bxxxx"] {
            #expect(PushID(bad) == nil)
        }
    }

    @Test func collapseIDsFit() {
        #expect(CollapseID.fitting("message-7") == "message-7")
        for text in ["", String(repeating: "x", count: 65), "two words", "é", "a\nb"] {
            let fitting = CollapseID.fitting(text)
            #expect(fitting.utf8.count == 64 && fitting == CollapseID.fitting(text))
        }
    }
}
