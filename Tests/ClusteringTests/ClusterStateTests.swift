import Hub
import TestSupport
import Testing
import Wire

@testable import Clustering

/// Hubs that tell each other by one log: whatever the order in which they do and hear things, all end with the same members, and
/// of a claim and an end of the same member one counts.
@Suite struct ClusterStateTests {
    private static let key = ChannelKey(topic: "realtime:a", isPrivate: false)

    /// A hub with one loop, as far as presence goes: what its loop shows, and what its clients are present as.
    private final class Node {
        let boot: UInt64
        var state: ClusterState
        /// Ref by member, as the loop's watchers know it.
        var shown: [MemberID: Name] = [:]
        var mine: Set<MemberID> = []
        var offers: Set<MemberID> = []
        /// Of members that were lost here: they may come back here, too.
        var lostHere: Set<MemberID> = []
        var read = 0
        var serial = 0
        /// Leaves that watchers saw.
        var left: [MemberID] = []

        init(_ boot: UInt64) {
            self.boot = boot
            state = ClusterState(boot: boot)
            state.logIsOpen()
        }
    }

    private struct World {
        var nodes: [Node]
        var log: [(boot: UInt64, message: PeerMessage)] = []
        var random: SeededGenerator
        var now: Int64 = 0
        var refs = 0
        /// What a hub does waits here until it is its turn in the log.
        var queues: [UInt64: [PeerMessage]] = [:]

        mutating func ref() -> String {
            refs += 1
            return "r\(refs)"
        }

        mutating func say(_ node: Node, _ relay: Relay) {
            var out: [ClusterState.Output] = []
            node.state.publishRelay(relay, by: 0, at: now, record: { _ in nil }, wish: { _ in nil }, &out)
            perform(out, node)
        }

        mutating func perform(_ out: [ClusterState.Output], _ node: Node) {
            for output in out {
                switch output {
                case .tell(let message): queues[node.boot, default: []].append(message)
                case .hear(.presence(_, let diff)): show(diff, node)
                case .offer(let lease): node.offers.insert(lease.member)
                case .withdraw(let member, _):
                    node.offers.remove(member)
                    node.lostHere.remove(member)
                case .conclude(let conclusion, let member, _, _): conclude(conclusion, member, node)
                default: break
                }
            }
        }

        func show(_ diff: PresenceDiff, _ node: Node) {
            for meta in diff.joins { node.shown[meta.member] = meta.ref }
            for meta in diff.leaves where node.shown[meta.member] == meta.ref {
                node.shown[meta.member] = nil
                node.left.append(meta.member)
            }
        }

        /// What the loop's hub does (`Hub.conclude`).
        mutating func conclude(_ conclusion: LeaseConclusion, _ member: MemberID, _ node: Node) {
            switch conclusion {
            case .isOver:
                guard let ref = node.shown[member] else { return }
                announce(node, joins: [], leaves: [PresenceMeta(member: member, key: "k", ref: ref, payload: [])])
            case .goesOnAnew:
                guard node.mine.remove(member) != nil else { return }
                node.serial += 1
                let other = MemberID(loop: 0, serial: node.serial)
                node.mine.insert(other)
                let old = node.shown[member].map { PresenceMeta(member: member, key: "k", ref: $0, payload: []) }
                let meta = PresenceMeta(member: other, key: "k", ref: Name(ref()), payload: [1])
                announce(node, joins: [meta], leaves: old.map { [$0] } ?? [])
            }
        }

        mutating func track(_ node: Node, _ member: MemberID) {
            let old = node.shown[member].map { PresenceMeta(member: member, key: "k", ref: $0, payload: []) }
            let meta = PresenceMeta(member: member, key: "k", ref: Name(ref()), payload: [1])
            announce(node, joins: [meta], leaves: old.map { [$0] } ?? [])
        }

        mutating func announce(_ node: Node, joins: [PresenceMeta], leaves: [PresenceMeta]) {
            var diff = PresenceDiff()
            diff.joins = joins
            diff.leaves = leaves
            show(diff, node)
            say(node, .presence(ClusterStateTests.key, diff))
        }

        static func order(_ members: Set<MemberID>) -> [MemberID] {
            members.sorted { ($0.loop, $0.serial) < ($1.loop, $1.serial) }
        }

        /// Something happens on a hub, or it writes, or reads.
        mutating func step() {
            guard let node = nodes.randomElement(using: &random) else { return }
            now += 1
            switch Int.random(in: 0..<10, using: &random) {
            case 0:
                node.serial += 1
                let member = MemberID(loop: 0, serial: node.serial)
                node.mine.insert(member)
                track(node, member)
            case 1:
                guard let member = Self.order(node.mine).randomElement(using: &random) else { return }
                node.mine.remove(member)
                node.lostHere.insert(member)
                say(node, .lease(ClusterStateTests.key, .lost(member, for: 5)))
            case 2, 3:
                // Back, here or on another hub.
                guard let member = Self.order(node.offers.union(node.lostHere)).randomElement(using: &random) else {
                    return
                }
                node.offers.remove(member)
                node.lostHere.remove(member)
                node.mine.insert(member)
                say(node, .lease(ClusterStateTests.key, .claimed(member, loop: 0)))
            case 4:
                guard let member = Self.order(node.lostHere).randomElement(using: &random) else { return }
                node.lostHere.remove(member)
                say(node, .lease(ClusterStateTests.key, .over(member)))
            case 5:
                guard let member = Self.order(node.mine).randomElement(using: &random), let ref = node.shown[member]
                else { return }
                node.mine.remove(member)
                announce(node, joins: [], leaves: [PresenceMeta(member: member, key: "k", ref: ref, payload: [])])
            case 6, 7: write(node)
            default: read(node)
            }
        }

        mutating func write(_ node: Node) {
            guard queues[node.boot]?.isEmpty == false, let message = queues[node.boot]?.removeFirst() else { return }
            log.append((node.boot, message))
        }

        mutating func read(_ node: Node) {
            guard node.read < log.count else { return }
            let (boot, message) = log[node.read]
            node.read += 1
            var out: [ClusterState.Output] = []
            node.state.receiveMessage(message, from: boot, at: now, &out)
            perform(out, node)
        }

        mutating func settle() {
            while nodes.contains(where: { $0.read < log.count || queues[$0.boot]?.isEmpty == false }) {
                for node in nodes {
                    write(node)
                    read(node)
                }
            }
        }
    }

    @Test(arguments: 0..<500) func allEndWithTheSameMembers(_ seed: Int) {
        var world = World(nodes: (1...3).map { Node($0) }, random: SeededGenerator(seed: UInt64(seed)))
        for _ in 0..<150 { world.step() }
        world.settle()
        // Whoever is lost is over in the end.
        for node in world.nodes {
            for member in World.order(node.lostHere) { world.say(node, .lease(Self.key, .over(member))) }
            node.lostHere.removeAll()
        }
        world.settle()
        let first = world.nodes[0]
        for node in world.nodes {
            for other in world.nodes {
                #expect(
                    node.state.digest(of: other.boot) == other.state.digest(of: other.boot),
                    "\(node.boot) of \(other.boot)")
            }
            #expect(node.shown.count == first.shown.count, "what is shown")
            #expect(Set(node.shown.values) == Set(first.shown.values))
            for member in node.mine { #expect(node.shown[member] != nil, "nobody who is here is gone") }
        }
        let here = world.nodes.reduce(0) { $0 + $1.mine.count }
        #expect(first.shown.count == here, "nobody who is gone is shown: \(first.shown.count) for \(here)")
    }

    @Test func membersOfAHubThatDiedAreOverWhenTheirWindowsAre() {
        var world = World(nodes: (1...3).map { Node($0) }, random: SeededGenerator(seed: 1))
        let dead = world.nodes[0]
        for serial in 1...3 {
            dead.mine.insert(MemberID(loop: 0, serial: serial))
            world.track(dead, MemberID(loop: 0, serial: serial))
        }
        world.settle()
        world.nodes.removeFirst()
        for (index, node) in world.nodes.enumerated() {
            var out: [ClusterState.Output] = []
            node.state.hubDied(1, at: world.now, window: { _, _ in 100 }, isCoordinator: index == 0, &out)
            world.perform(out, node)
            #expect(node.offers.count == 3)
        }
        // One of them is back on the other hub.
        let other = world.nodes[1]
        if let member = other.offers.first {
            other.offers.remove(member)
            other.mine.insert(member)
            world.say(other, .lease(Self.key, .claimed(member, loop: 0)))
        }
        world.settle()
        world.now += 101
        var out: [ClusterState.Output] = []
        world.nodes[0].state.endOverdue(of: { $0 == 1 }, at: world.now, &out)
        world.perform(out, world.nodes[0])
        world.settle()
        for node in world.nodes {
            #expect(node.shown.count == 1 && node.left.count == 2)
        }
    }

    /// A hub that stood still is taken for dead, is back before a window is over, and stands still once more, much later.
    @Test func membersOfAHubThatWasTakenForDeadAreThereWhenItIs() {
        var world = World(nodes: (1...3).map { Node($0) }, random: SeededGenerator(seed: 1))
        let (still, other) = (world.nodes[0], world.nodes[1])
        for serial in 1...3 {
            still.mine.insert(MemberID(loop: 0, serial: serial))
            world.track(still, MemberID(loop: 0, serial: serial))
        }
        // Of one it has said itself that it is lost.
        world.say(still, .lease(Self.key, .lost(MemberID(loop: 0, serial: 3), for: 10_000)))
        world.settle()
        for time in [1000, 100_000] as [Int64] {
            world.now = time
            var out: [ClusterState.Output] = []
            other.state.hubDied(1, at: world.now, window: { _, _ in 100 }, isCoordinator: false, &out)
            world.perform(out, other)
            #expect(other.offers.count == 3)
            out = []
            other.state.endOverdue(of: { time == 1000 && $0 == 1 }, at: world.now, &out)
            #expect(out.count == 0, "the windows of those who were there begin now")
            other.state.hubReturned(1, &out)
            world.perform(out, other)
            #expect(other.offers.count == 1, "who was lost may still come back here")
        }
        world.now = 101_000
        var out: [ClusterState.Output] = []
        other.state.hubDied(1, at: world.now, window: { _, _ in 100 }, isCoordinator: false, &out)
        world.perform(out, other)
        out = []
        other.state.endOverdue(of: { $0 == 1 }, at: world.now, &out)
        world.perform(out, other)
        world.settle()
        #expect(other.shown.count == 2 && other.left.count == 1)
    }

    /// A hub that was killed and started anew has the first name again, and knows nothing of who was on it.
    @Test func membersThatTheCoordinatorDoesNotKnowAreEndedByTheHubBehindIt() {
        var world = World(nodes: (1...3).map { Node($0) }, random: SeededGenerator(seed: 1))
        world.nodes[0].mine.insert(MemberID(loop: 0, serial: 1))
        world.track(world.nodes[0], MemberID(loop: 0, serial: 1))
        world.settle()
        let newcomer = Node(4)
        newcomer.read = world.log.count
        world.nodes[0] = newcomer
        for node in world.nodes {
            var out: [ClusterState.Output] = []
            node.state.hubDied(1, at: world.now, window: { _, _ in 100 }, isCoordinator: node.boot == 4, &out)
            world.perform(out, node)
        }
        func endAll(after time: Int64) -> [Int] {
            world.now += time
            for (rank, node) in world.nodes.enumerated() {
                var out: [ClusterState.Output] = []
                node.state.endOverdue(of: { $0 == 1 }, at: world.now, rank: rank, &out)
                world.perform(out, node)
            }
            world.settle()
            return world.nodes.map(\.shown.count)
        }
        #expect(endAll(after: 101) == [0, 1, 1], "the coordinator would have ended it")
        #expect(endAll(after: 2000) == [0, 0, 0])
        #expect(world.nodes.map(\.left.count) == [0, 1, 1])
    }

    @Test func withoutTheLogNobodyWaitsForIt() {
        var state = ClusterState(boot: 1)
        let broadcast = OrderedBroadcast(.text(Array("{}".utf8)))
        var out: [ClusterState.Output] = []
        state.publishRelay(
            .ordered(Self.key, broadcast, isNumbered: false), by: 0, at: 0, record: { _ in nil }, wish: { _ in nil },
            &out)
        #expect(out.count { if case .number = $0 { true } else { false } } == 1)
        #expect(out.count { if case .tell = $0 { true } else { false } } == 1)
        out = []
        state.logIsOpen()
        state.receiveMessage(
            .ordered(Self.key, .text(Array("{}".utf8)), sender: nil, databaseID: nil), from: 1, at: 0, &out)
        #expect(
            out.count { if case .lack(Self.key) = $0 { true } else { false } } == 1, "it was told of, under another id")
        #expect(out.count == 1)
        out = []
        state.publishRelay(
            .ordered(Self.key, broadcast, isNumbered: false), by: 0, at: 0, record: { _ in nil }, wish: { _ in nil },
            &out)
        #expect(out.count == 1, "it waits")
        state.logIsAway(&out)
        #expect(out.count == 2)
    }

    /// Redis took it, and lost it before anybody had read it: no sequence lacks in the epoch that begins without it.
    @Test func whatTheLogLostOfAMemberIsSaidAnew() {
        var state = ClusterState(boot: 1)
        var out: [ClusterState.Output] = []
        state.logIsOpen()
        var diff = PresenceDiff()
        diff.joins = [PresenceMeta(member: MemberID(loop: 0, serial: 1), key: "k", ref: "r", payload: [])]
        state.publishRelay(.presence(Self.key, diff), by: 0, at: 0, record: { _ in nil }, wish: { _ in nil }, &out)
        state.allCameOut(&out)
        #expect(out.count == 1, "the log was never away")
        state.logIsAway(&out)
        state.logIsOpen()
        out = []
        state.allCameOut(&out)
        #expect(out.isEmpty, "it may be on its way")
        state.allCameOut(&out)
        guard case .tell(let again)? = out.first, case .presence(_, joins: let joins, leaves: _) = again else {
            Issue.record("nothing was said")
            return
        }
        #expect(joins.map(\.ref) == ["r"])
        state.receiveMessage(again, from: 1, at: 0, &out)
        out = []
        for _ in 0..<3 { state.allCameOut(&out) }
        #expect(out.isEmpty, "the log has it")
    }

    @Test func whatIsSaidTwiceIsShownOnce() {
        var (state, other) = (ClusterState(boot: 1), ClusterState(boot: 2))
        var out: [ClusterState.Output] = []
        state.logIsOpen()
        other.logIsOpen()
        var diff = PresenceDiff()
        diff.joins = [PresenceMeta(member: MemberID(loop: 0, serial: 1), key: "k", ref: "r", payload: [])]
        state.publishRelay(.presence(Self.key, diff), by: 0, at: 0, record: { _ in nil }, wish: { _ in nil }, &out)
        guard case .tell(let message)? = out.first else {
            Issue.record("nothing was said")
            return
        }
        var heard: [ClusterState.Output] = []
        for _ in 0..<2 { other.receiveMessage(message, from: 1, at: 0, &heard) }
        let shown = heard.compactMap { if case .hear(.presence(_, let diff)) = $0 { diff } else { nil } }
        #expect(shown.map(\.joins.count) == [1] && shown.allSatisfy(\.leaves.isEmpty))
    }

    /// A hub that is started while Redis is away, or whose name is still its predecessor's, takes clients before it is in the log.
    @Test func whoCameBeforeThisHubWasInTheLogIsToldThatMessagesAreMissing() {
        var state = ClusterState(boot: 1)
        var out: [ClusterState.Output] = []
        var gaps: Int { out.count { if case .hear(.missing) = $0 { true } else { false } } }
        state.logIsOpen(&out)
        #expect(gaps == 1)
        state.logIsAway(&out)
        state.logIsOpen(&out)
        #expect(gaps == 1, "what it missed since, it reads")
    }

    @Test(arguments: [true, false]) func whatTheLogDoesNotTakeIsNotTakenForTheNext(_ isInLog: Bool) {
        var state = ClusterState(boot: 1)
        if isInLog { state.logIsOpen() }
        let (tooLarge, next) = ("1", "2")
        let body = PeerMessage.BroadcastBody.text(Array("{}".utf8))
        var out: [ClusterState.Output] = []
        var numbered: [String?] {
            out.compactMap { if case .number(_, let broadcast, _) = $0 { broadcast.databaseID } else { nil } }
        }
        for id in [tooLarge, next] {
            let broadcast = OrderedBroadcast(body.message, sender: nil, databaseID: id)
            state.publishRelay(
                .ordered(Self.key, broadcast, isNumbered: false), by: 0, at: 0, record: { _ in nil },
                wish: { _ in nil }, &out)
            if id == tooLarge { state.newestIsTooLarge(&out) }
        }
        #expect(numbered == (isInLog ? [tooLarge] : [tooLarge, next]), "the second waits for the log, if it is there")
        state.logIsOpen()
        state.receiveMessage(.ordered(Self.key, body, sender: nil, databaseID: next), from: 1, at: 0, &out)
        #expect(numbered == [tooLarge, next])
    }
}

extension ClusterState {
    mutating func logIsOpen() {
        var out: [Output] = []
        logIsOpen(&out)
    }
}
