import Streams
import Testing
import Wire

@Suite struct CloseRuleTests {
    private static func name(_ text: String) throws -> StreamName { try #require(StreamName(text)) }

    @Test func theFirstThatFitsCounts() throws {
        let rules = [
            CloseRule(pattern: "reply/*", statement: "one"),
            CloseRule(pattern: "reply/*", statement: "two", reasons: [.cancelled, .aborted], role: "writer"),
            CloseRule(pattern: "*", statement: "three", reasons: [.complete, .cancelled]),
        ]
        #expect(try rules.first(for: Self.name("reply/1"), .complete)?.statement == "one")
        #expect(try rules.first(for: Self.name("reply/1"), .cancelled)?.statement == "two")
        #expect(try rules.first(for: Self.name("voice/1"), .cancelled)?.statement == "three")
        #expect(try rules.first(for: Self.name("voice/1"), .aborted) == nil)
    }

    @Test func oneStatementIsForAllThatAreComplete() throws {
        let rules = [CloseRule(pattern: nil, statement: "one")]
        #expect(try rules.first(for: Self.name("anything/at/all"), .complete)?.setting == "streams.on_close")
        #expect(try rules.first(for: Self.name("anything"), .cancelled) == nil)
        #expect(rules[0].failureText("no such column") == "no such column")
    }

    @Test func aFailureNamesTheEntry() {
        let rule = CloseRule(pattern: "reply/*", statement: "one", role: "it's \"me\"")
        #expect(rule.failureText("no such column") == "reply/*: no such column")
        #expect(rule.setting == "streams.on_close for reply/*")
        #expect(rule.bearer?.claims == Array(#"{"role":"it's \"me\""}"#.utf8))
    }

    @Test func boundsAreThoseOfTheFirstPattern() throws {
        let rules = [
            BoundRule(pattern: "voice/*", StreamBound(bytes: 1)), BoundRule(pattern: "*", StreamBound(bytes: 2)),
        ]
        #expect(try rules.first(for: Self.name("voice/1"))?.bytes == 1)
        #expect(try rules.first(for: Self.name("reply/1"))?.bytes == 2)
        #expect(try [BoundRule]().first(for: Self.name("reply/1")) == nil)
    }
}
