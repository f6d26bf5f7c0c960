import Postgres
import Testing

@Suite struct SQLTemplateTests {
    @Test(
        arguments: [
            ("select {one} from {two}", "select 1 from b"), ("{one}{two}", "1b"), ("'{{one}}'", "'{1}'"),
            ("'{}' '{a,b}' {ONE} { one }", "'{}' '{a,b}' {ONE} { one }"), ("{three}", "{three}"), ("{one", "{one"),
            ("", ""), ("{braces}", "{one}"),
        ])
    func filled(_ template: String, _ text: String) {
        #expect(SQLTemplate(template).filled(["one": "1", "two": "b", "braces": "{one}"]) == text)
    }

    @Test func commentsAreLeftOut() {
        #expect(SQLTemplate(withoutComments: "-- why {one}\nselect {one}\n-- end").filled(["one": "1"]) == "select 1")
    }
}
