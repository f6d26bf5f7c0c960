import Testing
import Wire

/// What an operator is shown of what clients say.
@Suite struct ExcerptTests {
    private func excerpt(_ json: String, bytes limit: Int = 200) throws -> String {
        Excerpt.of(try JSON(parsing: Array(json.utf8)), bytes: limit)
    }

    private static let token =
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhZGEifQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"

    @Test func whatIsNoSecretIsShownAsItIs() throws {
        let json = #"{"type":"broadcast","event":"wave","payload":{"n":[1,-2.50,true,null,"a\"b"],"sb":"so"}}"#
        #expect(try excerpt(json) == json)
    }

    @Test(arguments: [
        "access_token", "apikey", "apiKey", "X-API-Key", "Authorization", "password", "user_jwt", "api_secret",
    ])
    func theValuesOfKeysThatNameSecretsAreHidden(key: String) throws {
        #expect(try excerpt(#"{"\#(key)":"open sesame","n":1}"#) == #"{"\#(key)":"***","n":1}"#)
        #expect(try excerpt(#"[{"\#(key)":{"deep":["open sesame"]}}]"#) == #"[{"\#(key)":"***"}]"#)
    }

    @Test func aKeyIsKnownHoweverItIsWritten() throws {
        #expect(try excerpt(#"{"access\u005ftoken":"open sesame"}"#) == #"{"access_token":"***"}"#)
    }

    @Test func tokensAreHiddenWhereverTheyStand() throws {
        #expect(try excerpt(#"{"text":"mine is \#(Self.token), yours?"}"#) == #"{"text":"mine is ***, yours?"}"#)
        #expect(try excerpt(#"["\#(Self.token)"]"#) == #"["***"]"#)
        #expect(try excerpt(#"{"\#(Self.token)":1}"#) == #"{"***":1}"#)
        #expect(try excerpt(#"["\u0065yJ\#(Self.token.dropFirst(3))"]"#) == #"["***"]"#)
        #expect(try excerpt(#"["sb_secret_0123456789abcdef"]"#) == #"["***"]"#)
    }

    /// Nothing of a token shows before or behind the cut, wherever it falls.
    @Test(arguments: 1..<220) func aCutShowsNoPartOfAToken(limit: Int) throws {
        let shown = try excerpt(#"{"text":"\#(String(repeating: "x", count: 90)) \#(Self.token)"}"#, bytes: limit)
        #expect(!shown.contains("eyJ"))
        #expect(shown.utf8.count <= limit + 3)
    }

    @Test func longTextsAreCutBetweenCharacters() throws {
        let shown = try excerpt("\"" + String(repeating: "ä", count: 500) + "\"", bytes: 100)
        #expect(shown == "\"" + String(repeating: "ä", count: 49) + "…")
    }

    @Test func deepAndWideValuesAreCut() throws {
        #expect(try excerpt("[" + String(repeating: "1,", count: 10_000) + "1]", bytes: 9) == "[1,1,1,1,…")
    }
}
