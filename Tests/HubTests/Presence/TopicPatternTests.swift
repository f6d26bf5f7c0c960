import Hub
import Testing

@Suite struct TopicPatternTests {
    @Test(arguments: [
        ("room:*", "room:1", true), ("room:*", "room:", true), ("room:*", "room", false), ("*", "", true),
        ("*", "anything", true), ("a", "a", true), ("a", "ab", false), ("", "", true), ("", "a", false),
        ("*:private", "x:private", true), ("*:private", "x:private:y", false), ("a*b*c", "abc", true),
        ("a*b*c", "aXbYbZc", true), ("a*b*c", "acb", false), ("ab*ba", "aba", false), ("*é*", "caf\u{e9}!", true),
    ]) func matches(_ pattern: String, _ name: String, _ expected: Bool) {
        #expect(TopicPattern(pattern).matches(name) == expected)
    }
}
