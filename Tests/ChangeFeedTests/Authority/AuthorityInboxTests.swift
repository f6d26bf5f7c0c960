import ChangeFeed
import Hub
import Logging
import Synchronization
import Testing
import Wire

/// What waits for the policies. Nobody takes it: the thread is not started.
@Suite struct AuthorityInboxTests {
    @Test func oneUserLeavesRoomForOthers() {
        let authority = PolicyAuthority(conninfo: "", logger: Logger(label: "inbox"))
        let refused = Mutex(0)
        func ask(_ subject: String?, _ topic: String = "a", times: Int) -> Int {
            refused.withLock { $0 = 0 }
            let claims = Claims(
                role: "authenticated", subject: subject.map { Name($0) }, expiresAt: 0, json: Array("{}".utf8))
            for _ in 0..<times {
                authority.decideQuestion(AuthorizationQuestion(claims: claims, topic: topic, right: .read(replay: nil)))
                { _ in
                    refused.withLock { $0 += 1 }
                }
            }
            return refused.withLock { $0 }
        }
        #expect(ask("ann", times: 15_000) == 5_000)
        #expect(ask("bob", times: 5_000) == 0)
        // Bytes, too; one question is taken whatever it has.
        let long = String(repeating: "x", count: 1_000_000)
        #expect(ask("cid", long, times: 10) == 4)
        #expect(ask("dan", String(repeating: "x", count: 7_000_000), times: 2) == 1)
        // Tokens without a user are those of many.
        #expect(ask(nil, times: 20_000) == 0)
    }
}
