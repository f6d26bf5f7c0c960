import RoostClient
import TestSupport
import Testing
import Wire

@Suite struct PresenceMapTests {
    private func json(_ text: String) -> JSON { JSON(trusted: Array(text.utf8)[...]) }

    private func meta(_ ref: String, _ mood: String = "") -> String { "{\"phx_ref\":\"\(ref)\",\"mood\":\"\(mood)\"}" }

    private func state(_ members: [String: [String]]) -> JSON { json(text(members)) }

    private func text(_ members: [String: [String]]) -> String {
        let entries = members.map { key, refs in
            "\"\(key)\":{\"metas\":[\(refs.map { meta($0) }.joined(separator: ","))]}"
        }
        return "{\(entries.joined(separator: ","))}"
    }

    private func diff(joins: [String: [String]] = [:], leaves: [String: [String]] = [:]) -> JSON {
        json("{\"joins\":\(text(joins)),\"leaves\":\(text(leaves))}")
    }

    private func refs(_ map: PresenceMap) -> [String: [String]] { map.members.mapValues { $0.map(\.ref) } }

    @Test func diffsWaitForTheState() {
        var map = PresenceMap()
        let outcome1 = map.applyDiff(diff(joins: ["b": ["2"]]))
        #expect(!outcome1)
        #expect(map.members.isEmpty)
        let outcome2 = map.applyState(state(["a": ["1"]]))
        #expect(outcome2)
        #expect(refs(map) == ["a": ["1"], "b": ["2"]])
    }

    @Test func severalClientsUnderOneKey() {
        var map = PresenceMap()
        _ = map.applyState(state(["a": ["1"]]))
        let outcome3 = map.applyDiff(diff(joins: ["a": ["2"]]))
        #expect(outcome3)
        #expect(refs(map) == ["a": ["1", "2"]])
        let outcome4 = map.applyDiff(diff(leaves: ["a": ["1"]]))
        #expect(outcome4)
        let outcome5 = map.applyDiff(diff(leaves: ["a": ["2"]]))
        #expect(outcome5)
        #expect(map.members.isEmpty)
    }

    @Test func anUpdateIsAJoinAndALeaveInOneDiff() {
        var map = PresenceMap()
        _ = map.applyState(state(["a": ["1"]]))
        _ = map.applyDiff(diff(joins: ["a": ["2"]], leaves: ["a": ["1"]]))
        #expect(refs(map) == ["a": ["2"]])
    }

    @Test func aLossKeepsTheMapForTheWindow() {
        var map = PresenceMap()
        _ = map.applyState(state(["a": ["1"]]))
        map.channelLost(at: .seconds(10), window: .seconds(2))
        let outcome6 = map.expireStale(.seconds(11))
        #expect(!outcome6)
        #expect(refs(map) == ["a": ["1"]])
        // The same people after the return: nothing to tell.
        let outcome7 = map.applyState(state(["a": ["1"]]))
        #expect(!outcome7)
        #expect(map.nextDeadline == nil)
        map.channelLost(at: .seconds(20), window: .seconds(2))
        let outcome8 = map.expireStale(.seconds(22))
        #expect(outcome8)
        #expect(map.members.isEmpty)
    }

    @Test func diffsAfterALossWaitForTheNextState() {
        var map = PresenceMap()
        _ = map.applyState(state(["a": ["1"]]))
        map.channelLost(at: .zero, window: .seconds(2))
        _ = map.applyDiff(diff(joins: ["b": ["2"]]))
        #expect(refs(map) == ["a": ["1"]])
        let outcome9 = map.applyState(state([:]))
        #expect(outcome9)
        #expect(refs(map) == ["b": ["2"]])
    }

    @Test func updatesSayWhatIsDifferent() {
        var map = PresenceMap()
        _ = map.applyState(state(["a": ["1"], "b": ["2"]]))
        let before = map.members
        _ = map.applyDiff(diff(joins: ["c": ["3"], "b": ["4"]], leaves: ["a": ["1"], "b": ["2"]]))
        let update = PresenceUpdate(map.members, since: before)
        #expect(update.joined == ["c"])
        #expect(update.left == ["a"])
        #expect(update.changed == ["b"])
    }

    /// Random joins, changes, leaves and losses: the map is what the model says after each state and diff.
    @Test(arguments: 0..<20 as Range<UInt64>) func aModel(seed: UInt64) {
        var chance = SeededGenerator(seed: seed)
        var map = PresenceMap()
        var model: [String: [String]] = [:]
        _ = map.applyState(state(model))
        for step in 0..<400 {
            let key = ["a", "b", "c"][chance.below(3)]
            switch chance.below(5) {
            case 0, 1:
                model[key, default: []].append("\(step)")
                _ = map.applyDiff(diff(joins: [key: ["\(step)"]]))
            case 2:
                guard let gone = chance.pick(from: model[key] ?? []) else { continue }
                model[key]?.removeAll { $0 == gone }
                if model[key] == [] { model[key] = nil }
                _ = map.applyDiff(diff(leaves: [key: [gone]]))
            case 3:
                guard let old = chance.pick(from: model[key] ?? []) else { continue }
                model[key]?.removeAll { $0 == old }
                model[key, default: []].append("\(step)")
                _ = map.applyDiff(diff(joins: [key: ["\(step)"]], leaves: [key: [old]]))
            default:
                map.channelLost(at: .seconds(step), window: .seconds(2))
                _ = map.applyState(state(model))
            }
            #expect(refs(map).mapValues { Set($0) } == model.mapValues { Set($0) }, "step \(step)")
        }
    }
}
