import DurableStreams
import HTTP
import Testing

/// Paths of the application's own (`streams.routes`).
@Suite struct StreamRouteTests {
    private func name(_ route: String, _ target: String) throws -> String? {
        let route = try #require(StreamRoute(route))
        return try StreamCall(head("GET \(target)"), routes: [route])?.name.text
    }

    @Test func valuesOfTheQueryMakeTheName() throws {
        #expect(try name("/reply=reply/{conversation}", "/reply?conversation=7") == "reply/7")
        #expect(try name("/v=a{x}b{y}", "/v?y=2&x=1") == "a1b2")
        #expect(try name("/all=everybody", "/all") == "everybody")
        #expect(try name("/reply=reply/{id}", "/other?id=1") == nil)
    }

    @Test(arguments: ["/reply", "/reply?id=", "/reply?id=a/b", "/reply?id=..", "/reply?id=a%01"])
    func whatMakesNoneIsRefused(_ target: String) {
        #expect(throws: StreamComplaint.self) { try name("/reply=reply/{id}", target) }
    }

    @Test func theMemberThatNamesEvents() throws {
        #expect(try #require(StreamRoute("/v=voice/{id};event=type")).eventMember == "type")
        #expect(try #require(StreamRoute("/v=voice/{id}")).eventMember == nil)
    }

    @Test(arguments: [
        "", "/a", "a=b", "/a=", "/a={", "/a={}", "/a=x}", "/a=b;event=", "/a=b;other=c", "/a=b;event=c;d",
    ])
    func whatIsNoneIsNotTaken(_ text: String) { #expect(StreamRoute(text) == nil) }
}
