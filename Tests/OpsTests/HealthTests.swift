import Ops
import Testing

@Suite("When nothing moves although something waits")
struct HealthTests {
    private static func health(behind: Duration? = nil, waiting: Duration? = nil) -> Health {
        let health = Health()
        health.reportFeed(problem: nil)
        health.reportCapture(problem: nil)
        health.setProbes(
            HealthProbes(mostBehind: .seconds(10), loops: { [.zero] }, feed: { behind }, capture: { waiting }))
        return health
    }

    private static func problems(_ health: Health) -> [String: String] {
        health.progress.reduce(into: [:]) { $0[$1.name] = $1.problem }
    }

    @Test("what was read from the WAL and waits for long to be stored is a stall, and the hub is not ready")
    func capture() {
        #expect(Self.problems(Self.health()) == [:])
        #expect(Self.problems(Self.health(waiting: .seconds(30))) == [:], "a batch is tried several times")
        let stalled = Self.health(waiting: .seconds(31))
        let sentence = "changes that were read from the WAL have waited 31 s to be stored"
        #expect(Self.problems(stalled) == ["capture": sentence])
        #expect(stalled.problem == sentence)
    }

    @Test("what the capture says of itself comes first, and does not hide that something waits")
    func captureThatSpeaks() {
        let stalled = Self.health(waiting: .seconds(60))
        stalled.reportCapture(problem: "changes are not read from the WAL: no")
        #expect(stalled.problem == "changes are not read from the WAL: no")
        #expect(Self.problems(stalled)["capture"]?.contains("have waited 60 s") == true)
    }

    @Test("a hub that reads no WAL has no such check to show, and none that fails")
    func noCapture() {
        let health = Health()
        health.reportFeed(problem: nil)
        #expect(!health.readiness.contains { $0.name == "capture" })
        #expect(Self.problems(health) == [:] && health.problem == nil)
    }

    @Test("a feed that is far behind is a stall")
    func lag() {
        #expect(Self.problems(Self.health(behind: .seconds(10))) == [:])
        let late = Self.health(behind: .seconds(11), waiting: .seconds(31))
        #expect(Self.problems(late)["lag"] == "the change feed is 11 s behind the database")
        #expect(Self.problems(late).count == 2)
    }
}
