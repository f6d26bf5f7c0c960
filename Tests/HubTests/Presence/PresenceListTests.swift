import Hub
import Testing
import Wire

/// One channel's list of who is present, without a hub.
@Suite final class PresenceListTests {
    private var list = PresenceList()

    private func meta(_ serial: Int, _ payload: String, ref: String, key: String = "k") -> PresenceMeta {
        PresenceMeta(member: MemberID(loop: 0, serial: serial), key: key, ref: Name(ref), payload: Array(payload.utf8))
    }

    private func track(_ serial: Int, _ payload: String, ref: String, key: String = "k") -> PresenceDiff? {
        let diff = list.tracking(meta(serial, payload, ref: ref, key: key))
        if let diff { list.applyDiff(diff) }
        return diff
    }

    private func refs(_ metas: [PresenceMeta]) -> [String] {
        metas.map { $0.ref.text + ($0.previousRef.map { "<\($0)" } ?? "") }
    }

    @Test func whoSaysTheSameAgainSaysNothing() {
        #expect(track(1, #"{"a":1,"b":2}"#, ref: "r1") != nil)
        #expect(
            track(1, #"{"b":2,"a":1}"#, ref: "r2") == nil, "some clients write the keys in another order every time")
        #expect(list.count == 1 && list.keyCount == 1)
    }

    @Test func severalStepsAreToldAsOneFromWhereTheWatchersAre() {
        _ = track(1, #"{"n":1}"#, ref: "r1")
        #expect(refs(list.takeNews().joins) == ["r1"])
        _ = track(1, #"{"n":2}"#, ref: "r2")
        _ = track(1, #"{"n":3}"#, ref: "r3")
        let diff = list.takeNews()
        #expect(refs(diff.joins) == ["r3<r1"])
        #expect(refs(diff.leaves) == ["r1"])
        #expect(!list.hasNews)
    }

    @Test func whoCameAndWentIsNoNews() {
        _ = track(1, #"{"n":1}"#, ref: "r1")
        if let diff = list.untracking(MemberID(loop: 0, serial: 1)) { list.applyDiff(diff) }
        #expect(!list.hasNews && list.isEmpty && list.listedBytes == 0)
    }

    @Test func theStateIsWhatTheWatchersWereTold() {
        _ = track(1, #"{"n":1}"#, ref: "r1")
        #expect(String(decoding: list.state(), as: UTF8.self) == "{}", "the news follow")
        _ = list.takeNews()
        _ = track(2, #"{"n":2}"#, ref: "r2", key: "other")
        #expect(String(decoding: list.state(), as: UTF8.self) == #"{"k":{"metas":[{"n":1,"phx_ref":"r1"}]}}"#)
        #expect(list.count == 2 && list.keyCount == 2)
        #expect(list[MemberID(loop: 0, serial: 2)]?.ref == "r2")
    }

    @Test func aLeaveOfAnOlderWordChangesNothing() {
        _ = track(1, #"{"n":1}"#, ref: "r1")
        _ = track(1, #"{"n":2}"#, ref: "r2")
        var late = PresenceDiff()
        late.leaves = [meta(1, #"{"n":1}"#, ref: "r1")]
        list.applyDiff(late)
        #expect(list.count == 1)
    }
}
