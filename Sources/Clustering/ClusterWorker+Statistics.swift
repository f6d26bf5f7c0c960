import Cluster

/// The statistics of the cluster's thread.
extension ClusterWorker {
    /// Updates this hub's own figures twice a second, whether the other hubs are reachable or not.
    mutating func takeFigures(at now: Instant) {
        guard now >= nextFigures else { return }
        nextFigures = now + Self.beatInterval
        let time = Self.milliseconds
        var figures = BeatFigures()
        figures.connections = setup.connections()
        figures.age = Int(time - startedAt) / 1000
        figures.said = said.updateRate(writer.statistics.written, at: time)
        figures.heard = heardOf.updateRate(statistics.received, at: time)
        figures.behind = behind
        figures.gaps = Int(clamping: statistics.gaps)
        statistics.own = figures
    }

    /// Publishes the statistics after each turn; those of other hubs are updated less often, because turns are frequent
    /// and hubs may be many.
    mutating func publishStatistics(at now: Instant) {
        (statistics.name, statistics.version) = (setup.own.name, setup.version)
        statistics.isWhole = link.isWhole && writer.isOpen && !isRefused
        statistics.epoch = reader.epoch ?? 0
        statistics.sent = writer.statistics.written
        statistics.entries = writer.statistics.calls
        statistics.sentAgain = writer.statistics.sentAgain
        statistics.dropped = writer.statistics.dropped
        statistics.healed = UInt64(reader.statistics.fetches)
        let damaged = UInt64(reader.statistics.malformed) + damagedLines
        if damaged > statistics.damaged, !isDamageTold {
            isDamageTold = true
            setup.logger.warning(
                "Something in Redis is damaged, or none of Roost's: what can be read is read, and roost_cluster_damaged_total counts the rest."
            )
        }
        statistics.damaged = damaged
        statistics.waitingBytes = writer.waitingBytes + reader.waitingBytes
        if now >= nextPeers {
            nextPeers = now + .milliseconds(100)
            takePeers()
        }
        published.value = statistics
    }

    /// A message of a hub is unreadable and skipped. There may be many, so only some are logged.
    mutating func reportUnreadable(_ hub: HubIdentity, at now: Instant) {
        damagedLines += 1
        if let damageNamedAt, now - damageNamedAt < .seconds(60) { return }
        damageNamedAt = now
        setup.logger.warning(
            "The hub \(hub.name), or somebody in its name, sent something that cannot be read; it is ignored.")
    }

    private mutating func takePeers() {
        statistics.isCoordinator = peers.isCoordinator
        statistics.foreignMembers = state.members.count - state.members.count(of: setup.own.boot)
        statistics.server = "\(setup.address)"
        statistics.isDraining = isDraining
        statistics.ownMembers = state.members.count(of: setup.own.boot)
        statistics.peers = peers.peers.sorted { $0.key < $1.key }.map { hub, peer in
            ClusterStatistics.Peer(
                name: hub.name, state: peer.state, version: peer.beat?.software,
                figures: BeatFigures(peer.beat?.figures ?? []),
                members: state.members.count(of: hub.boot))
        }
    }
}
