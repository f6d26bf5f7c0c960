import Cluster

/// What may go wrong.
enum Fault: CaseIterable {
    case failoverWithLostTail, splitBrain, restartEmpty, restartWithCutTail, restartWhole, flush, engineFreezes
    case hubFreezes, linkStalls, commandKilled, subscriptionKilled, outputCut, silentDrop, hubKilled, burst
    case hubCutOffWhileEngineEmpties
    /// Never by itself: writes are lost within an epoch, as no restart that OPEN notices does it.
    case tailLostUnnoticed

    static let all = allCases.filter { $0 != .tailLostUnnoticed }
    /// Those from which everything can be healed.
    static let healable = all.filter { $0 != .hubKilled && $0 != .burst }
}

extension Simulation {
    /// Whether this boot, or one that lives, heard a beat or a message of it at this time or later.
    func isHeardOf(_ boot: UInt64, since: Int64) -> Bool {
        hubs.contains { $0.identity.boot == boot || $0.record.heardAt[boot] ?? .min >= since }
    }

    func make(_ fault: Fault) {
        let hub = hubs[Int(random(0...Int64(hubs.count - 1)))]
        switch fault {
        case .failoverWithLostTail:
            let old = promote()
            old.isUp = false
            cutAll(of: old)
        case .splitBrain:
            let old = promote()
            former = old
            // Some hubs learn of it at once, the others go on with the former primary.
            for hub in hubs where hub.command?.engine === old && chance(50) { hub.perform { hub.disconnect() } }
            after(random(300_000...3_000_000)) { [self] in demoteFormer(old) }
        case .restartEmpty: restart { $0.flush() }
        case .restartWithCutTail:
            let writes = Int(random(0...20))
            restart { $0.loseTail(writes) }
        case .restartWhole: restart { _ in }
        case .flush: primary.flush()
        case .engineFreezes: primary.frozenUntil = max(primary.frozenUntil, now + random(100_000...2_500_000))
        case .hubFreezes: hub.freeze(for: random(100_000...4_000_000))
        case .linkStalls: stall(hub)
        case .commandKilled: hub.command?.cut()
        case .subscriptionKilled: hub.subscription?.cut()
        case .outputCut:
            hub.subscription?.stalledUntil = now + 200_000
            let link = hub.subscription
            after(200_000) { link?.cut() }
        case .silentDrop: hub.subscription?.dropNext = 5
        case .hubKilled: restart(hub)
        case .burst: hub.perform { hub.send(300, padding: 300) }
        case .tailLostUnnoticed:
            primary.loseTail(Int(random(1...20)))
            cutAll(of: primary)
        case .hubCutOffWhileEngineEmpties:
            stall(hub)
            after(random(0...400_000)) { [self] in chance(50) ? restart { $0.flush() } : make(.failoverWithLostTail) }
        }
    }

    private func stall(_ hub: SimulatedHub) {
        let end = now + random(200_000...2_500_000)
        let which = random(0...2)
        if which != 0 { hub.command?.stalledUntil = end }
        if which != 1 { hub.subscription?.stalledUntil = end }
    }

    private func newReplid() -> UInt64 { random.next() }

    private func cutAll(of engine: SimulatedEngine) {
        for link in engine.links { link.cut(isSilent: chance(10)) }
    }

    /// A replica that lacks a tail is the primary from now on; answers the old one.
    private func promote() -> SimulatedEngine {
        if let former { demoteFormer(former) }
        let old = primary
        primary = old.promoteReplica(lacking: Int(random(0...20)), replid: newReplid())
        return old
    }

    private func demoteFormer(_ engine: SimulatedEngine) {
        guard former === engine else { return }
        former = nil
        engine.isMaster = false
        cutAll(of: engine)
    }

    private func restart(_ change: (SimulatedEngine) -> Void) {
        let engine = primary
        cutAll(of: engine)
        engine.isUp = false
        change(engine)
        engine.restart(replid: newReplid())
        after(random(50_000...1_000_000)) { engine.isUp = true }
    }

    private func restart(_ hub: SimulatedHub) {
        guard hubs.count > 2 else { return }
        hubs.removeAll { $0 === hub }
        retired.append(hub)
        hub.kill()
        after(random(200_000...5_000_000)) { [self] in addHub(name: hub.identity.name) }
    }

    /// Everything works again; those that freeze or stall do so for as long as they would.
    func heal() {
        primary.frozenUntil = now
        for hub in hubs { hub.thaw() }
        if let former { demoteFormer(former) }
    }
}
