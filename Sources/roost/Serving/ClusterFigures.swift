import Cluster
import Clustering
import Ops
import ServerAPI

extension ClusterService {
    /// The names of the hubs that are unreachable now.
    var unreached: [String] {
        let statistics = statistics
        guard !statistics.isWhole else { return [] }
        let names = Set(statistics.peers.filter(\.isThere).map(\.name)).sorted()
        return names.isEmpty ? [ServerAPI.Peers.unknown] : names
    }
}

extension ClusterStatistics {
    /// The versions of this hub and of those that are connected.
    private var versions: [Figure] {
        let hubs = [(name, version)] + peers.filter(\.isThere).map { ($0.name, $0.version ?? "unknown") }
        return hubs.sorted { $0.0 < $1.0 }.map { name, version in
            Figure(
                "roost_cluster_peer_info", .gauge,
                "1 for each connected hub of the cluster, including this one, with its version.", 1,
                label: "hub=\"\(Figure.escapeLabel(name))\",version=\"\(Figure.escapeLabel(version))\"")
        }
    }

    /// The cluster for the operator's page, this hub first.
    func overview(of node: String) -> ClusterOverview {
        let own = overviewHub(node, isDraining ? .draining : .living, version, self.own, ownMembers)
        return ClusterOverview(
            server: server, problem: isWhole ? nil : problem ?? "the other hubs have not been reached yet", gaps: gaps,
            disconnects: disconnects, waitingBytes: waitingBytes, isCoordinator: isCoordinator,
            hubs: [own] + peers.map { overviewHub($0.name, $0.state, $0.version, $0.figures, $0.members) })
    }

    private func overviewHub(
        _ name: String, _ state: PeerTable.State, _ version: String?, _ figures: BeatFigures, _ members: Int
    ) -> ClusterOverview.Hub {
        let word =
            switch state {
            case .living: "there"
            case .draining: "draining"
            case .left: "left"
            case .died: "died"
            }
        return ClusterOverview.Hub(
            name: name, state: word, version: version, age: figures.age, connections: figures.connections,
            members: members,
            said: figures.said, heard: figures.heard, behind: figures.behind, gaps: figures.gaps)
    }

    /// For `/metrics`.
    var figures: [Figure] { hubs + versions + messages }

    private var hubs: [Figure] {
        [
            Figure(
                "roost_cluster_reached", .gauge,
                "1 while this hub and the others act as one, 0 while it goes on alone.",
                isWhole ? 1 : 0),
            Figure("roost_cluster_hubs", .gauge, "Other hubs that are connected.", peers.count(where: \.isThere)),
            Figure(
                "roost_cluster_coordinator", .gauge, "1 on the hub that ends the presence of members whose hub died.",
                isCoordinator ? 1 : 0),
            Figure(
                "roost_cluster_members", .gauge, "Present members on other hubs that are known here.",
                foreignMembers),
        ]
    }

    private var messages: [Figure] {
        [
            Figure("roost_cluster_sent_total", .counter, "Messages sent to the other hubs.", Double(sent)),
            Figure("roost_cluster_received_total", .counter, "Messages received from other hubs.", Double(received)),
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
            Figure(
                "roost_cluster_damaged_total", .counter,
                "Entries and messages in Redis that could not be read, and were passed over.", Double(damaged)),
            Figure(
                "roost_cluster_behind_entries", .gauge,
                "Entries of the log that this hub had not read yet when it last looked; it looks twice a second.",
                own.behind ?? 0),
            Figure("roost_cluster_disconnects_total", .counter, "Times that Redis was lost.", Double(disconnects)),
            Figure(
                "roost_cluster_questions_total", .counter,
                "Questions to other hubs: where a client is, and who is present there.", Double(questions)),
            Figure(
                "roost_cluster_questions_unanswered_total", .counter,
                "Questions to other hubs that had no answer in time.", Double(questionsUnanswered)),
            Figure(
                "roost_cluster_waiting_bytes", .gauge,
                "Bytes of messages that wait for Redis, or are kept to be sent again.",
                waitingBytes),
        ]
    }
}
