import Hub
import TestSupport
import Testing

@testable import Push

struct ProviderTokenCacheTests {
    /// A day, with a clock that is set now and then, and an APNs that finds tokens too old at random.
    @Test(arguments: [1, 2, 3, 4, 5] as [UInt64])
    func neverMintsTwiceWithin20MinutesNorSendsWithAnOldOne(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var cache = ProviderTokenCache(try Samples.key())
        var now = Samples.start
        var mints: [Int64] = []
        while now.monotonic < Samples.start.monotonic + 86_400_000 {
            let token = try cache.token(at: now)
            if cache.minted > mints.count { mints.append(now.monotonic) }
            #expect(token.generation == mints.count)
            #expect(now.monotonic - (mints.last ?? 0) < 60 * 60_000)
            if Int.random(in: 0..<20, using: &random) == 0 {
                let answered = Int.random(in: 1...token.generation, using: &random)
                let isWorthIt = cache.expire(answered, at: now)
                let next = try cache.token(at: now)
                #expect(isWorthIt == (next.generation > answered))
                if cache.minted > mints.count { mints.append(now.monotonic) }
            }
            if Int.random(in: 0..<200, using: &random) == 0 {
                now.unix += Int64.random(in: -7_200_000...7_200_000, using: &random)
            }
            now = now.advanced(by: Int64.random(in: 1...60_000, using: &random))
        }
        #expect(zip(mints, mints.dropFirst()).allSatisfy { $1 - $0 >= 20 * 60_000 })
        #expect((24...72).contains(mints.count))
    }

    @Test func isRefreshedAt45Minutes() throws {
        var cache = ProviderTokenCache(try Samples.key())
        let first = try cache.token(at: Samples.start)
        #expect(try cache.token(at: Samples.start.advanced(by: 45 * 60_000 - 1)).jwt == first.jwt)
        #expect(try cache.token(at: Samples.start.advanced(by: 45 * 60_000)).jwt != first.jwt)
        #expect(cache.minted == 2)
    }

    @Test func oneMintServesAllThatWereOnTheirWay() throws {
        var cache = ProviderTokenCache(try Samples.key())
        _ = try cache.token(at: Samples.start)
        let later = Samples.start.advanced(by: 30 * 60_000)
        for _ in 0..<500 {
            let isWorthIt = cache.expire(1, at: later)
            #expect(isWorthIt)
            #expect(try cache.token(at: later).generation == 2)
        }
        #expect(cache.minted == 2)
        let isWorthIt = cache.expire(2, at: later)
        #expect(!isWorthIt)
    }
}
