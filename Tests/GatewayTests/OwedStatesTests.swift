import Gateway
import Hub
import Testing

/// Which steps of presence and typing a slow reader is spared, and what it gets instead.
@Suite struct OwedStatesTests {
    private let room = ChannelState.presence(ChannelKey(topic: "realtime:room", isPrivate: false))
    private let other = ChannelState.typing(ChannelKey(topic: "realtime:room", isPrivate: false))

    @Test func whoKeepsUpIsSparedNothing() {
        var owed = OwedStates()
        let answer1 = owed.spare(1, room, isBehind: false)
        #expect(!answer1)
        #expect(!owed.isOwed(1))
        let answer3 = owed.take(1)
        #expect(answer3 == nil)
    }

    /// A difference to something unseen would mislead: from the first frame that is left out on, all are.
    @Test func untilTheStateIsSentAllOfTheChannelIsLeftOut() {
        var owed = OwedStates()
        let answer4 = owed.spare(1, room, isBehind: true)
        #expect(answer4)
        let answer5 = owed.spare(1, room, isBehind: false)
        #expect(answer5)
        let answer6 = owed.spare(1, other, isBehind: false)
        #expect(!answer6)
        let answer7 = owed.spare(2, room, isBehind: false)
        #expect(!answer7)
        let answer8 = owed.take(1)
        #expect(answer8 == room)
        let answer9 = owed.spare(1, room, isBehind: false)
        #expect(!answer9)
    }

    @Test func everyChannelIsOwedOnce() {
        var owed = OwedStates()
        for _ in 0..<100 {
            let answer10 = owed.spare(1, room, isBehind: true)
            #expect(answer10)
            let answer11 = owed.spare(1, other, isBehind: true)
            #expect(answer11)
        }
        let taken = [owed.take(1), owed.take(1)]
        #expect(taken == [other, room])
        #expect(!owed.isOwed(1))
        let answer14 = owed.take(1)
        #expect(answer14 == nil)
    }

    @Test func aClosedSocketIsOwedNothing() {
        var owed = OwedStates()
        let answer15 = owed.spare(1, room, isBehind: true)
        #expect(answer15)
        owed.settled.append(1)
        owed.forget(1)
        #expect(owed.settled.isEmpty)
        let answer17 = owed.spare(1, room, isBehind: false)
        #expect(!answer17)
    }
}
