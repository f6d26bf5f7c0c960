import Foundation
import RoostClient
import Testing

@Suite struct RowFilterTests {
    @Test func theGrammar() {
        let id = UUID(uuid: (0xAA, 0, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 1))
        let cases: [(RowFilter, String)] = [
            (.eq("conversation_id", id), "conversation_id=eq.aa000000-0000-4000-8000-000000000001"),
            (.neq("n", 5), "n=neq.5"), (.lt("n", -5), "n=lt.-5"), (.lte("n", 1.5), "n=lte.1.5"),
            (.gt("n", Double.nan), "n=gt.NaN"), (.gte("b", true), "b=gte.true"),
            (.in("s", ["a", "b,c", "d"]), "s=in.(a,\"b,c\",d)"), (.in("n", [1, 2]), "n=in.(1,2)"),
            (.like("s", "%a_"), "s=like.%a_"), (.ilike("s", "A%"), "s=ilike.A%"),
            (.match("s", "^(a|b)$"), "s=match.\"^(a|b)$\""), (.imatch("s", "a"), "s=imatch.a"),
            (.is("s", .null), "s=is.null"), (.isDistinct("s", "x"), "s=isdistinct.x"),
            (.not(.in("s", ["x"])), "s=not.in.(x)"), (.not(.not(.eq("s", "x"))), "s=eq.x"),
            (.all([.eq("a", 1), .eq("b", 2)]).and(.is("c", .unknown)), "a=eq.1,b=eq.2,c=is.unknown"),
            (.gt("at", Date(timeIntervalSince1970: 1.5)), "at=gt.1970-01-01T00:00:01.500Z"),
            (RowFilter.raw("id=gt.7").and(.eq("b", 2)), "b=eq.2,id=gt.7"),
        ]
        for (filter, text) in cases { #expect(filter.text == text) }
    }

    @Test(arguments: [
        ("plain", "plain"), ("", "\"\""), (" x", "\" x\""), ("x\t", "\"x\t\""), ("a,b", "\"a,b\""), ("a)b", "\"a)b\""),
        ("say \"hi\"", "\"say \\\"hi\\\"\""), ("back\\slash", "\"back\\\\slash\""), ("a.b=c", "a.b=c"), ("ü", "ü"),
    ])
    func quoting(value: String, text: String) {
        #expect(RowFilter.eq("c", value).text == "c=eq." + text)
    }
}
