import Cluster
import Clustering
import Hub
import Logging
import Redis
import Settings
import StreamFiles

extension RoostConfiguration {
    /// What makes this hub one of several; nil where `cluster.url` is not set.
    ///
    /// - Throws: `RunFailure`, whose sentence says what to write.
    func cluster(
        _ shared: HubShared, _ logger: Logger, figures: @escaping @Sendable () -> [Int],
        report: @escaping @Sendable (String?) -> Void
    ) throws -> ClusterService? {
        guard let address = try redisAddress(),
            let own = HubIdentity(name: nodeName, boot: .random(in: 1 ... .max))
        else { return nil }
        return ClusterService(
            ClusterService.Setup(
                address: address, cluster: cluster.name, own: own, shared: shared, rules: rules.presence,
                restartWindow: Int64(restartSeconds) * 1000, figures: figures, logger: logger, report: report))
    }

    /// Where several hubs have their streams together; nil for a hub alone.
    func sharedStreams() throws -> SharedStreams? {
        try redisAddress().map { SharedStreams(address: $0, cluster: cluster.name, node: nodeName) }
    }

    private func redisAddress() throws -> RedisAddress? {
        guard let url = cluster.url else { return nil }
        var address: RedisAddress
        do { address = try RedisAddress(url) } catch {
            throw RunFailure("cluster.url: \(error)", .configuration)
        }
        if let file = cluster.caFile { address.encryption?.authorities = file }
        return address
    }
}
