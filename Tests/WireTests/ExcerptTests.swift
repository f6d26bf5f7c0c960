import Testing
import Wire

/// What an operator is shown of what clients say.
@Suite struct ExcerptTests {
    private func excerpt(_ json: String, bytes limit: Int = 200) throws -> String {
        Excerpt.makeText(try JSON(parsing: Array(json.utf8)), bytes: limit)
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

/// A frame's topic, event and payload, whatever its kind.
@Suite struct FrameHeadTests {
    private func head(_ text: String) -> FrameHead { FrameHead(message: Array(text.utf8)[...], isBinary: false) }

    @Test func bothVersions() {
        let expected = FrameHead(topic: "realtime:a", event: "broadcast", excerpt: #"{"n":1}"#)
        #expect(head(#"["1","2","realtime:a","broadcast",{"n":1}]"#) == expected)
        #expect(head(#"{"topic":"realtime:a","event":"broadcast","payload":{"n":1},"ref":null}"#) == expected)
    }

    @Test func binaryFramesOfBothWays() {
        let payload = Array(#"{"n":1}"#.utf8)
        let incoming: [UInt8] = [3, 1, 0, 1, 2, 0, 1] + Array("7aev".utf8) + payload
        let outgoing: [UInt8] = [4, 1, 2, 0, 1] + Array("aev".utf8) + payload
        for message in [incoming, outgoing] {
            #expect(
                FrameHead(message: message[...], isBinary: true)
                    == FrameHead(topic: "a", event: "ev", excerpt: #"{"n":1}"#))
        }
    }

    @Test func whatIsNoFrameIsToldAsSuch() {
        #expect(head("{").event == "malformed")
        for bytes in [[], [3], [4, 200, 200, 0, 1, 65], [9, 9, 9, 9, 9, 9, 9, 9]] as [[UInt8]] {
            _ = FrameHead(message: bytes[...], isBinary: true)
        }
    }

    @Test func theHubsOwnFrames() {
        let text = ServerFrame(.v2, topic: JSONString.encode("realtime:a")).push("system", payload: Array("{}".utf8))
        #expect(FrameHead(text) == FrameHead(topic: "realtime:a", event: "system", excerpt: "{}"))
        #expect(FrameHead(.ping).event == "ping")
        let close = FrameHead(.close(.serviceRestart, reason: "restarting"))
        #expect(close == FrameHead(topic: "", event: "close", excerpt: "1012 restarting"))
    }

    @Test(arguments: [10, 125, 126, 200, 65_535, 65_536, 70_000]) func thePayloadStandsBehindTheHeader(count: Int) {
        let frame = Frame(.text, count: count) { $0 += repeatElement(UInt8(7), count: count) }
        #expect(Array(frame.payload) == [UInt8](repeating: 7, count: count))
    }
}
