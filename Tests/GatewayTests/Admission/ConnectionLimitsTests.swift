import Gateway
import Hub
import Testing
import Wire

/// How many sockets are let in, in all, from one address and of one user.
@Suite struct ConnectionLimitsTests {
    private static func limits(all: Int = 0, address: Int = 0, user: Int = 0) -> HubLimits {
        var limits = HubLimits()
        (limits.connections, limits.connectionsPerAddress, limits.connectionsPerUser) = (all, address, user)
        return limits
    }

    private func address(_ text: String) throws -> PeerAddress { PeerAddress(try #require(IPAddress(text))) }

    @Test func theLastPlaceIsGivenAwayOnce() {
        let limits = ConnectionLimits(limits: Self.limits(all: 2))
        #expect(limits.enter(nil, nil) == nil)
        #expect(limits.enter(nil, nil) == nil)
        for _ in 0..<3 { #expect(limits.enter(nil, nil) == .over(.connections, 2)) }
        limits.leave(nil)
        #expect(limits.enter(nil, nil) == nil, "who was refused is in no count")
        #expect(limits.enter(nil, nil) == .over(.connections, 2))
    }

    @Test func anAddressIsAHostAndNotOneOfItsAddresses() throws {
        let limits = ConnectionLimits(limits: Self.limits(address: 1))
        #expect(limits.enter(try address("192.0.2.1"), nil) == nil)
        #expect(limits.enter(try address("192.0.2.2"), nil) == nil)
        #expect(limits.enter(try address("192.0.2.1"), nil) == .over(.connectionsPerAddress, 1))
        #expect(limits.enter(try address("::ffff:192.0.2.1"), nil) == .over(.connectionsPerAddress, 1))
        #expect(limits.enter(try address("2001:db8::1"), nil) == nil)
        #expect(limits.enter(try address("2001:db8::2"), nil) == .over(.connectionsPerAddress, 1), "the same /64")
        #expect(limits.enter(try address("2001:db8:0:1::1"), nil) == nil)
    }

    @Test func whoIsRefusedForOneLimitIsNotCountedForAnother() throws {
        let limits = ConnectionLimits(limits: Self.limits(all: 3, address: 2, user: 1))
        let home = try address("192.0.2.1")
        #expect(limits.enter(home, "ann") == nil)
        for _ in 0..<3 { #expect(limits.enter(home, "ann") == .over(.connectionsPerUser, 1)) }
        #expect(limits.enter(home, "bob") == nil, "neither in all nor of the address")
        #expect(limits.enter(home, "cid") == .over(.connectionsPerAddress, 2))
        #expect(limits.enter(try address("192.0.2.2"), "cid") == nil, "nor of the user")
    }

    /// From when it is accepted, whatever it is used for.
    @Test func aConnectionIsCountedForItsAddressFromItsFirstMoment() throws {
        let limits = ConnectionLimits(limits: Self.limits(address: 2))
        let (home, other) = (try address("192.0.2.1"), try address("192.0.2.2"))
        #expect(limits.arrive(home) == .counted)
        #expect(limits.enter(home, nil) == nil)
        #expect(limits.enter(home, nil) == .over(.connectionsPerAddress, 2))
        #expect(limits.arrive(home) == .over && !limits.fits(home))
        limits.leave(home)
        #expect(limits.fits(home), "others left")
        #expect(limits.arrive(other) == .counted)
        // So many are told; more are not even heard, and in no count.
        var heard = 0
        while limits.arrive(home) == .over { heard += 1 }
        #expect(heard == 10 && limits.arrive(home) == .refused)
        for _ in 0..<12 { limits.depart(home) }
        #expect(limits.arrive(home) == .counted)
        limits.adopt(Self.limits())
        #expect(limits.arrive(other) == .free)
    }

    @Test func aUserIsCountedByTheDoorAndByTheHubAlike() {
        let limits = ConnectionLimits(limits: Self.limits(user: 2))
        #expect(limits.countsUsers && !limits.countsAddresses)
        #expect(limits.enter(nil, "ann") == nil)
        #expect(limits.admitSocket("ann"))
        #expect(!limits.admitSocket("ann"))
        #expect(limits.enter(nil, "ann") == .over(.connectionsPerUser, 2))
        limits.releaseSocket("ann")
        limits.releaseSocket("nobody")
        #expect(limits.admitSocket("ann"))
    }

    /// Whoever was let in before a limit is in nobody's count; leaving must not make room that is not there.
    @Test func otherLimitsHoldForWhoComes() throws {
        let limits = ConnectionLimits(limits: Self.limits())
        let home = try address("192.0.2.1")
        for _ in 0..<5 { #expect(limits.enter(nil, nil) == nil) }
        limits.adopt(Self.limits(all: 5, address: 1))
        #expect(limits.capacity == 5 && limits.countsAddresses)
        #expect(limits.enter(home, nil) == .over(.connections, 5))
        limits.leave(nil)
        #expect(limits.enter(home, nil) == nil)
        limits.leave(nil)
        #expect(limits.enter(home, nil) == .over(.connectionsPerAddress, 1))
        limits.adopt(Self.limits())
        #expect(limits.enter(home, nil) == nil)
    }
}
