import CTestKeys
import Hub
import Signatures
import Testing
import Wire

@testable import Push

struct AccessTokenTests {
    private func cache() throws -> AccessTokenCache { AccessTokenCache(try Samples.account()) }

    private func token(_ text: String = "ya29.a", seconds: Int = 3599, at unix: Int64 = Samples.start.unix) -> Answer {
        let body = "{\"access_token\":\"\(text)\",\"expires_in\":\(seconds),\"token_type\":\"Bearer\"}"
        return Answer(status: 200, date: unix, body: Array(body.utf8))
    }

    @Test func isFetchedOnceAndRenewedBeforeItsEnd() throws {
        var cache = try cache()
        var now = Samples.start
        #expect(cache.authorization(at: now) == nil)
        #expect(try cache.request(at: now) != nil)
        #expect(try cache.request(at: now) == nil, "one at a time")
        #expect(cache.take(token(), at: now) == .good)
        #expect(cache.authorization(at: now)?.text == "Bearer ya29.a")
        #expect(try cache.request(at: now) == nil)
        now = now.advanced(by: 3_299_000)
        #expect(try cache.request(at: now) != nil, "five minutes before its end")
        #expect(cache.authorization(at: now)?.generation == 1, "the one before goes on meanwhile")
        #expect(cache.take(token("ya29.b", at: now.unix), at: now) == .good)
        #expect(cache.authorization(at: now)?.text == "Bearer ya29.b" && cache.fetched == 2)
        #expect(cache.authorization(at: now.advanced(by: 3_599_000)) == nil)
    }

    @Test func isRenewedWhenItIsRefused() throws {
        var cache = try cache()
        _ = try cache.request(at: Samples.start)
        _ = cache.take(token(), at: Samples.start)
        #expect(cache.expire(1) && cache.authorization(at: Samples.start) == nil)
        _ = try cache.request(at: Samples.start)
        _ = cache.take(token("ya29.b"), at: Samples.start)
        // What was sent with the first is answered only now.
        #expect(cache.expire(1) && cache.authorization(at: Samples.start)?.generation == 2)
    }

    @Test func waitsLongerAfterEachFailure() throws {
        var cache = try cache()
        var now = Samples.start
        var pauses: [Int64] = []
        for _ in 0..<9 {
            #expect(try cache.request(at: now) != nil)
            #expect(cache.take(nil, at: now) == .later(why: ""))
            let due = try #require(cache.nextDue(at: now))
            pauses.append((due - now.monotonic) / 1000)
            #expect(try cache.request(at: now.advanced(by: due - now.monotonic - 1)) == nil)
            now = now.advanced(by: due - now.monotonic)
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60])
    }

    @Test func makesUpForAClockThatIsWrong() throws {
        var cache = try cache()
        let now = Samples.start
        let first = try #require(try cache.request(at: now))
        #expect(try Assertion(first).issuedAt == now.unix / 1000)
        let refusal = Answer(
            status: 400, date: now.unix + 7_200_000, body: Array("{\"error\":\"invalid_grant\"}".utf8))
        guard case .later(let why) = cache.take(refusal, at: now) else { throw Unexpected() }
        #expect(why.contains("7200 s behind"))
        let second = try #require(try cache.request(at: now), "at once")
        #expect(try Assertion(second).issuedAt == now.unix / 1000 + 7200)
        #expect(cache.take(token(at: now.unix + 7_200_000), at: now) == .good)
    }

    @Test func saysWhatIsWrongWithTheKey() throws {
        var cache = try cache()
        _ = try cache.request(at: Samples.start)
        let refusal = Answer(
            status: 400, date: Samples.start.unix, body: Array("{\"error\":\"invalid_grant\"}".utf8))
        guard case .refused("invalid_grant", let advice) = cache.take(refusal, at: Samples.start) else {
            throw Unexpected()
        }
        #expect(advice.contains("not deleted"))
        #expect(cache.nextDue(at: Samples.start) == Samples.start.monotonic + 60_000)
    }

    @Test(arguments: [
        "", "{}", "{\"access_token\":\"\"}", "{\"access_token\":\"a\\r\\nb: c\"}", "<html>",
        "{\"access_token\":\"\(String(repeating: "x", count: 4001))\"}",
    ])
    func takesNoStrangeToken(_ body: String) throws {
        var cache = try cache()
        _ = try cache.request(at: Samples.start)
        let verdict = cache.take(Answer(status: 200, body: Array(body.utf8)), at: Samples.start)
        #expect(verdict == .later(why: "its answer has no access_token"))
        #expect(cache.authorization(at: Samples.start) == nil)
    }

    /// What a request asserts, verified with the account's public key.
    private struct Assertion {
        let issuedAt: Int64

        init(_ request: PushRequest) throws {
            let form = String(decoding: request.body, as: UTF8.self)
            let jwt = try #require(form.split(separator: "&").last?.dropFirst("assertion=".count))
            let parts = jwt.split(separator: ".")
            let claims = JSON(trusted: try #require(Base64URL.decode(parts[1].utf8))[...])
            #expect(claims["aud"]?.string == "https://oauth2.googleapis.com/token")
            #expect(claims["exp"]?.int == claims["iat"]?.int.map { $0 + 3600 })
            #expect(request.headers[":path"] == "/token")
            issuedAt = Int64(try #require(claims["iat"]?.int))
        }
    }

    private struct Unexpected: Error {}
}

struct ServiceAccountTests {
    @Test func isReadFromTheFile() throws {
        let account = try ServiceAccount(json: Array(Samples.accountFile().utf8))
        #expect((account.project, account.tokenURL) == ("roost-1", "https://oauth2.googleapis.com/token"))
    }

    @Test(arguments: [
        ("", ServiceAccountError.notJSON), ("{\"type\":\"authorized_user\"}", .otherKind),
        ("{\"type\":\"service_account\"}", .missing("project_id")),
    ])
    func saysWhatIsWrong(_ text: String, _ problem: ServiceAccountError) {
        #expect(throws: problem) { try ServiceAccount(json: Array(text.utf8)) }
    }

    @Test func takesNoWeakKeyAndNoPath() throws {
        let file = try Samples.accountFile()
        func problem(_ old: String, _ new: String) -> ServiceAccountError? {
            do throws(ServiceAccountError) {
                _ = try ServiceAccount(json: Array(file.replacing(old, with: new).utf8))
                return nil
            } catch { return error }
        }
        #expect(problem("roost-1", "roost/1") == .badProject)
        #expect(problem("https://oauth2", "http://oauth2") == .badTokenURL)
        #expect(problem("BEGIN PRIVATE KEY", "BEGIN PUBLIC KEY") == .badKey)
    }
}
