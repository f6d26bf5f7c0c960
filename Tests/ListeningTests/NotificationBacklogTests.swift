import Listening
import Testing
import Workers

@Suite struct NotificationBacklogTests {
    @Test("a loop that is too far behind gets nothing until it has taken all, and then that there is a gap")
    func gap() {
        let backlog = NotificationBacklog(loops: 2, most: 100)
        #expect(backlog.admit(60, to: 0) && backlog.admit(60, to: 0), "the last one may go beyond the bound")
        #expect(!backlog.admit(1, to: 0))
        #expect(backlog.admit(1, to: 1), "the other loop is not held up")
        backlog.noteProcessed(60, by: 0)
        #expect(!backlog.admit(1, to: 0), "what comes in between would stand before the word of the gap")
        #expect(backlog.takeGaps() == [])
        #expect(!backlog.news.wait(until: .now))
        backlog.noteProcessed(60, by: 0)
        #expect(backlog.news.wait(until: .now))
        #expect(backlog.takeGaps() == [0])
        #expect(backlog.takeGaps() == [] && !backlog.news.wait(until: .now), "once")
        #expect(backlog.admit(1, to: 0))
    }
}
