import Gateway
import Hub
import Testing

/// Which steps of presence and typing a slow reader is spared, and what it gets instead.
@Suite struct PendingResyncsTests {
    private let room = ChannelState.presence(ChannelKey(topic: "realtime:room", isPrivate: false))
    private let other = ChannelState.typing(ChannelKey(topic: "realtime:room", isPrivate: false))

    @Test func whoKeepsUpIsSparedNothing() {
        var resyncs = PendingResyncs()
        let answer1 = resyncs.spare(1, room, isBehind: false)
        #expect(!answer1)
        #expect(!resyncs.has(1))
        let answer3 = resyncs.take(1)
        #expect(answer3 == nil)
    }

    /// A difference to something unseen would mislead: from the first frame that is left out on, all are.
    @Test func untilTheStateIsSentAllOfTheChannelIsLeftOut() {
        var resyncs = PendingResyncs()
        let answer4 = resyncs.spare(1, room, isBehind: true)
        #expect(answer4)
        let answer5 = resyncs.spare(1, room, isBehind: false)
        #expect(answer5)
        let answer6 = resyncs.spare(1, other, isBehind: false)
        #expect(!answer6)
        let answer7 = resyncs.spare(2, room, isBehind: false)
        #expect(!answer7)
        let answer8 = resyncs.take(1)
        #expect(answer8 == room)
        let answer9 = resyncs.spare(1, room, isBehind: false)
        #expect(!answer9)
    }

    @Test func everyChannelIsOwedOnce() {
        var resyncs = PendingResyncs()
        for _ in 0..<100 {
            let answer10 = resyncs.spare(1, room, isBehind: true)
            #expect(answer10)
            let answer11 = resyncs.spare(1, other, isBehind: true)
            #expect(answer11)
        }
        let taken = [resyncs.take(1), resyncs.take(1)]
        #expect(taken == [other, room])
        #expect(!resyncs.has(1))
        let answer14 = resyncs.take(1)
        #expect(answer14 == nil)
    }

    @Test func aClosedSocketIsOwedNothing() {
        var resyncs = PendingResyncs()
        let answer15 = resyncs.spare(1, room, isBehind: true)
        #expect(answer15)
        resyncs.ready.append(1)
        resyncs.forget(1)
        #expect(resyncs.ready.isEmpty)
        let answer17 = resyncs.spare(1, room, isBehind: false)
        #expect(!answer17)
    }
}
