import Cluster
import Clustering
import Hub
import Logging
import Redis
import Settings

extension RoostConfiguration {
    /// What makes this hub one of several; nil where `cluster.url` is not set.
    ///
    /// - Throws: `RunFailure`, whose sentence says what to write.
    func cluster(
        _ shared: HubShared, _ logger: Logger, figures: @escaping @Sendable () -> [Int],
        answers: [PeerSubject: any PeerAnswering], report: @escaping @Sendable (String?) -> Void
    ) throws -> ClusterService? {
        guard let url = cluster.url else { return nil }
        var address: RedisAddress
        do { address = try RedisAddress(url) } catch {
            throw RunFailure("cluster.url: \(error)", .configuration)
        }
        if let file = cluster.caFile { address.encryption?.authorities = file }
        guard let own = HubIdentity(name: nodeName, boot: .random(in: 1 ... .max)) else { return nil }
        return ClusterService(
            ClusterService.Setup(
                address: address, cluster: cluster.name, own: own, shared: shared, rules: rules.presence,
                restartWindow: Int64(restartSeconds) * 1000, figures: figures, answers: answers, logger: logger,
                report: report))
    }
}
