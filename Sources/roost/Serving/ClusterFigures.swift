import Clustering
import Ops
import ServerAPI

extension ClusterService {
    /// Other hubs that are not reached now, by their names.
    var unreached: [String] {
        let statistics = statistics
        guard !statistics.isWhole else { return [] }
        let names = Set(statistics.peers.filter(\.isThere).map(\.name)).sorted()
        return names.isEmpty ? [ServerAPI.Peers.unknown] : names
    }
}

extension ClusterStatistics {
    /// For the live page.
    var others: [DashboardSources.OtherHub] {
        peers.map { .init(name: $0.name, isThere: $0.isThere, connections: $0.connections) }
    }

    /// For `/metrics`.
    var figures: [Figure] {
        [
            Figure(
                "roost_cluster_reached", .gauge,
                "1 while this hub and the others act as one, 0 while it goes on alone.",
                isWhole ? 1 : 0),
            Figure("roost_cluster_hubs", .gauge, "Other hubs that are there.", peers.count(where: \.isThere)),
            Figure(
                "roost_cluster_coordinator", .gauge, "1 on the hub that ends the presence of members whose hub died.",
                isCoordinator ? 1 : 0),
            Figure(
                "roost_cluster_members", .gauge, "Members of presence of other hubs that are known here.",
                foreignMembers),
            Figure("roost_cluster_sent_total", .counter, "Messages that the others were told.", Double(sent)),
            Figure("roost_cluster_received_total", .counter, "Messages of other hubs that arrived.", Double(received)),
            Figure(
                "roost_cluster_entries_total", .counter,
                "Entries that this hub wrote to the log; one takes all messages of a turn.",
                Double(entries)),
            Figure(
                "roost_cluster_sent_again_total", .counter,
                "Messages that were sent again because the log had lost them.",
                Double(sentAgain)),
            Figure(
                "roost_cluster_dropped_total", .counter,
                "Messages that were given up because Redis was away for too long; clients of other hubs are told that they are missing.",
                Double(dropped)),
            Figure(
                "roost_cluster_reads_total", .counter,
                "Times that entries were read from the log because they did not come by themselves.",
                Double(healed)),
            Figure(
                "roost_cluster_gaps_total", .counter,
                "Times that clients were told that messages of another hub are missing.",
                Double(gaps)),
            Figure("roost_cluster_disconnects_total", .counter, "Times that Redis was lost.", Double(disconnects)),
            Figure(
                "roost_cluster_waiting_bytes", .gauge,
                "Bytes of messages that wait for Redis, or are kept to be sent again.",
                waitingBytes),
        ]
    }
}
