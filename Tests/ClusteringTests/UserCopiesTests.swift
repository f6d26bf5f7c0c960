import Cluster
import Hub
import Synchronization
import Testing
import Wire

@testable import Clustering

/// How a hub comes to know how many sockets the users of others have.
@Suite struct UserCopiesTests {
    private func hub(_ name: String, _ boot: UInt64 = 1) throws -> HubIdentity {
        try #require(HubIdentity(name: name, boot: boot))
    }

    @Test func aHubThatComesIsAskedForAllPartByPart() throws {
        var copies = UserCopies()
        let one = try hub("one")
        copies.startCopy(one)
        for part in 0..<UserCopies.parts {
            let asked = copies.nextQuestions()
            #expect(asked.map(\.part) == [part] && asked.map(\.hub) == [one])
            #expect(copies.nextQuestions().isEmpty, "one question at a time")
            if part == 3 {
                let answer = copies.receiveAnswer(one, part: part, isKnown: false)
                #expect(!answer)
                #expect(copies.nextQuestions().map(\.part) == [part], "it is asked again")
            }
            let answer2 = copies.receiveAnswer(one, part: part, isKnown: true)
            #expect(answer2)
        }
        #expect(copies.nextQuestions().isEmpty)
        let answer3 = copies.receiveAnswer(one, part: 15, isKnown: true)
        #expect(!answer3)
    }

    @Test func whoIsGoneIsNotAskedAndAGapBeginsAnew() throws {
        var copies = UserCopies()
        let (one, two) = (try hub("one"), try hub("two"))
        copies.startCopy(one)
        copies.startCopy(two)
        #expect(copies.nextQuestions().count == 2)
        copies.removeCopy(two)
        let answer4 = copies.receiveAnswer(two, part: 0, isKnown: true)
        #expect(!answer4)
        let answer5 = copies.receiveAnswer(one, part: 0, isKnown: true)
        #expect(answer5)
        #expect(copies.nextQuestions().map(\.part) == [1])
        copies.restartCopies([one])
        #expect(copies.nextQuestions().map(\.part) == [0])
        let answer6 = copies.receiveAnswer(one, part: 1, isKnown: true)
        #expect(!answer6, "it was asked before the gap")
    }

    @Test func theAnswersOfAllPartsAreAllUsers() throws {
        let tally = UserTally()
        for number in 0..<1000 { for _ in 0...(number % 3) { _ = tally.admitSocket(Name("user-\(number)"), most: 0) } }
        let answer = UserCountsAnswer(tally: tally)
        let other = UserTally()
        for part in 0..<UserCopies.parts {
            let bytes = Mutex<[UInt8]?>(nil)
            answer.answerQuestion([UInt8(part)], of: "other") { answer in bytes.withLock { $0 = answer } }
            let users = bytes.withLock { $0 }
            var fields = RelayReader(try #require(users)[...])
            other.replaceCounts(try fields.readUsers(), of: 1) { UserCopies.part(of: $0) == part }
        }
        other.reachesOthers(true)
        for number in 0..<1000 {
            #expect(!other.admitSocket(Name("user-\(number)"), most: 1 + number % 3))
            #expect(other.admitSocket(Name("user-\(number)"), most: 2 + number % 3))
        }
        answer.answerQuestion([UInt8(UserCopies.parts)], of: "other") { #expect($0 == nil) }
        answer.answerQuestion([], of: "other") { #expect($0 == nil) }
    }
}
