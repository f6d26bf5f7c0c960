import Testing

@testable import roost_load

@Suite struct PresenceSumTests {
    private func sum(_ keys: String...) -> UInt64 { keys.reduce(0) { $0 &+ PresenceSum.hash($1.utf8) } }
    private func members(_ text: String) -> UInt64 {
        Array(text.utf8).withUnsafeBytes { PresenceSum.members($0, at: 0) }
    }
    private func change(_ text: String) -> UInt64 {
        Array(text.utf8).withUnsafeBytes { PresenceSum.change(ofDiff: $0) }
    }

    @Test func stateOfBothVersions() {
        #expect(members("{}") == 0)
        let state = #"{"u1":{"metas":[{"phx_ref":"a","t":"{[\"}"}]},"u2":{"metas":[{"x":{"y":[{}]}},{"phx_ref":"c"}]}}"#
        #expect(members(state) == sum("u1", "u2", "u2"))
        // What stands before the object, and behind it, does not count.
        #expect(members(#"",\#(state)]"#) == sum("u1", "u2", "u2"))
        #expect(members(#"\#(state),"ref":null,"x":{"u3":{"metas":[{}]}}}"#) == sum("u1", "u2", "u2"))
    }

    @Test func diffs() {
        let joins = #"{"u1":{"metas":[{"phx_ref":"b","phx_ref_prev":"a"}]}}"#,
            leaves = #"{"u1":{"metas":[{"phx_ref":"a"}]}}"#
        #expect(change(#"{"joins":\#(joins),"leaves":{}}"#) == sum("u1"))
        #expect(change(#"{"joins":{},"leaves":\#(leaves)}"#) == 0 &- sum("u1"))
        #expect(change(#"{"leaves":\#(leaves),"joins":\#(joins)}"#) == 0)
    }

    @Test func whoeverComesAndGoesLeavesNoTrace() {
        var known = members(#"{"a":{"metas":[{}]}}"#)
        known &+= change(#"{"joins":{"b":{"metas":[{}]}},"leaves":{}}"#)
        known &+= change(#"{"joins":{},"leaves":{"a":{"metas":[{}]}}}"#)
        #expect(known == sum("b"))
        #expect(sum("ab") != sum("ba"))
    }
}
