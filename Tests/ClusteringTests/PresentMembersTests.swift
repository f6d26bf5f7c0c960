import Hub
import Testing
import Wire

@testable import Clustering

/// Whose word counts of who is present, by the order of the log.
@Suite struct PresentMembersTests {
    private static let key = ChannelKey(topic: "realtime:a", isPrivate: false)

    private static func name(_ serial: Int) -> PeerMessage.MemberName {
        PeerMessage.MemberName(boot: 1, loop: 1, serial: serial)
    }

    private static func record(_ serial: Int, _ ref: String = "r") -> PeerMessage.PresentMember {
        PeerMessage.PresentMember(
            member: name(serial), ref: Name(ref), previousRef: nil, key: "k", hasMadeKey: false, user: "u", payload: [],
            appState: nil)
    }

    private func three() -> PresentMembers {
        var members = PresentMembers()
        for serial in 1...3 { members.addMember(Self.record(serial), in: Self.key, of: 1) }
        return members
    }

    @Test func theFirstOfAClaimAndAnEndCounts() {
        var members = three()
        for serial in 1...2 { #expect(members.markLost(Self.name(serial), of: 1, until: 100) != nil) }
        #expect(members.claimMember(Self.name(1), of: .init(hub: 1, turn: 0), by: 2)?.hub == 1)
        #expect(members.endMember(Self.name(1), of: .init(hub: 1, turn: 0), by: 1) == nil)
        #expect(members.claimMember(Self.name(1), of: .init(hub: 1, turn: 0), by: 3) == nil, "the second claim")
        #expect(members.markLost(Self.name(1), of: 1, until: 200) == nil, "it is another hub's")
        #expect(members.endMember(Self.name(2), of: .init(hub: 1, turn: 0), by: 1) != nil)
        #expect(members.claimMember(Self.name(2), of: .init(hub: 1, turn: 0), by: 2) == nil)
        #expect(members.endMember(Self.name(2), of: .init(hub: 1, turn: 0), by: 1) == nil, "once")
        #expect(members.claimMember(Self.name(9), of: .init(hub: 1, turn: 0), by: 2) == nil)
        #expect(members.count(of: 1) == 2 && members.count(of: 2) == 1)
        #expect(members.endedMembers(by: 1).map(\.record.member.serial) == [2])
        #expect(members.claimMember(Self.name(1), of: .init(hub: 2, turn: 1), by: 1)?.hub == 2, "and back")
    }

    @Test func anotherHubsWordOnAMemberSaysNothing() {
        var members = three()
        #expect(members.claimMember(Self.name(1), of: .init(hub: 1, turn: 0), by: 2) != nil)
        let others = members.addMember(Self.record(1, "s"), in: Self.key, of: 1)
        #expect(!others)
        #expect(members[Self.name(1)]?.record.ref == "r")
        let its = members.addMember(Self.record(1, "s"), in: Self.key, of: 2)
        #expect(its)
        #expect(members.removeMember(Self.name(1), ref: "r", by: 2) == nil, "of another time")
        #expect(members.removeMember(Self.name(1), ref: "s", by: 2) != nil)
        #expect(members[Self.name(1)] == nil)
    }

    @Test func theAppsStateStaysWhereNoneIsSaid() {
        var members = three()
        members.setAppState(.background, of: Self.name(1))
        members.addMember(Self.record(1, "s"), in: Self.key, of: 1)
        #expect(members[Self.name(1)]?.record.appState == .background)
    }

    @Test func twoThatHaveTheSameHaveTheSameDigest() {
        var (members, other) = (three(), PresentMembers())
        for serial in [3, 1, 2] { other.addMember(Self.record(serial), in: Self.key, of: 1) }
        #expect(other.digest(of: 1) == members.digest(of: 1) && other.digest(of: 1) != 0)
        other.addMember(Self.record(2, "s"), in: Self.key, of: 1)
        #expect(other.digest(of: 1) != members.digest(of: 1))
        other.addMember(Self.record(2), in: Self.key, of: 1)
        #expect(other.digest(of: 1) == members.digest(of: 1))
        _ = members.claimMember(Self.name(1), of: .init(hub: 1, turn: 0), by: 2)
        #expect(other.digest(of: 1) != members.digest(of: 1))
        for serial in 1...3 { other.removeMember(Self.name(serial), ref: "r", by: 1) }
        #expect(other.digest(of: 1) == 0)
    }

    @Test func aSnapshotTakesThePlaceOfWhatWasKnown() {
        var members = three()
        #expect(members.claimMember(Self.name(2), of: .init(hub: 1, turn: 0), by: 2) != nil)
        let said = [Self.record(2), Self.record(3, "s"), Self.record(4)].map {
            PresentMembers.Copy(record: $0, channel: Self.key, hub: 1)
        }
        let (joined, left) = members.replace(membersOf: 1, by: said)
        #expect(Set(joined.map(\.record.member.serial)) == [3, 4])
        #expect(left.map(\.record.member.serial) == [1])
        #expect(members[Self.name(2)]?.hub == 2, "who was claimed since stays where it is")
    }

    @Test func ofItsOwnMembersAHubsWordCountsWhateverClaimsItKnowsOf() {
        var members = three()
        // Claimed by another hub and back: here there were two claims, and the hub's own copy knows of none.
        #expect(members.claimMember(Self.name(1), of: .init(hub: 1, turn: 0), by: 2) != nil)
        #expect(members.claimMember(Self.name(1), of: .init(hub: 2, turn: 1), by: 1) != nil)
        let said = (1...3).map { PresentMembers.Copy(record: Self.record($0), channel: Self.key, hub: 1) }
        let (joined, left) = members.replace(membersOf: 1, by: said)
        #expect(joined.isEmpty && left.isEmpty)
        #expect(members[Self.name(1)]?.turn == 0 && members.count(of: 1) == 3)
    }
}
