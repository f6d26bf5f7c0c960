import Cluster
import Clustering
import Hub
import Logging
import Redis
import Settings
import StreamFiles

extension RoostConfiguration {
    /// The address of Redis; nil if `cluster.url` is not set.
    ///
    /// - Throws: `RunFailure` with the remedy.
    func clusterAddress() throws(RunFailure) -> RedisAddress? {
        guard let url = cluster.url else { return nil }
        var address: RedisAddress
        do { address = try RedisAddress(url) } catch {
            throw RunFailure("cluster.url: \(error)", .configuration)
        }
        if let file = cluster.caFile { address.encryption?.authorities = file }
        return address
    }

    /// The place of the streams that several hubs share; nil for a single hub.
    func sharedStreams() throws -> SharedStreams? {
        try clusterAddress().map { SharedStreams(address: $0, cluster: cluster.name, node: nodeName) }
    }

    /// The service that connects this hub with others; nil if `cluster.url` is not set.
    ///
    /// - Throws: `RunFailure` with the remedy.
    func clusterService(
        _ shared: HubShared, _ logger: Logger, connections: @escaping @Sendable () -> Int,
        answers: [PeerSubject: any PeerAnswering], report: @escaping @Sendable (String?) -> Void
    ) throws -> ClusterService? {
        guard let address = try clusterAddress() else { return nil }
        guard let own = HubIdentity(name: nodeName, boot: .random(in: 1 ... .max)) else { return nil }
        return ClusterService(
            ClusterService.Setup(
                address: address, cluster: cluster.name, own: own, shared: shared, rules: rules.presence,
                restartWindow: Int64(restartSeconds) * 1000, logBytes: cluster.logBytes, version: Roost.version,
                connections: connections, answers: answers, logger: logger, report: report))
    }
}
