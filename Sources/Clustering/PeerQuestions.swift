import Cluster
import Hub

/// The open questions of this hub to others.
///
/// Every question ends: by its answer, its deadline, or the end of the hub or of the link. The number of open questions is bounded; beyond
/// it, a question fails at once. Pure: times are monotonic milliseconds that are passed in. Confined to the thread of the cluster's worker.
struct PeerQuestions {
    typealias Done = @Sendable ([PeerAnswer]) -> Void

    /// The receiver of the answers.
    enum Asker: Sendable {
        case caller(Done)
        /// The worker itself, completing its copy of a hub's members.
        case presence(of: HubIdentity)
    }

    /// A question that has ended.
    struct Finished {
        let asker: Asker
        let answers: [PeerAnswer]
    }

    /// One question to several hubs.
    private struct Round {
        var answers: [PeerAnswer] = []
        var open: Set<UInt64> = []
        let deadline: Int64
        let asker: Asker
    }

    /// The limit of open questions, each to one hub.
    static let mostOpen = 512

    private var rounds: [UInt64: Round] = [:]
    private var open: [UInt64: (hub: HubIdentity, round: UInt64)] = [:]
    private var last: UInt64 = 0

    var count: Int { open.count }
    /// When the next question expires.
    var deadline: Int64? { rounds.values.lazy.map(\.deadline).min() }

    /// Adds a question.
    ///
    /// - Returns: the id for each hub, which its answer carries; nil if too many questions are open.
    mutating func openQuestion(_ hubs: [HubIdentity], until deadline: Int64, for asker: Asker) -> [(
        hub: HubIdentity, id: UInt64
    )]? {
        guard open.count + hubs.count <= Self.mostOpen else { return nil }
        last += 1
        let number = last
        var round = Round(deadline: deadline, asker: asker)
        var asked: [(hub: HubIdentity, id: UInt64)] = []
        for hub in hubs {
            last += 1
            open[last] = (hub, number)
            round.open.insert(last)
            asked.append((hub, last))
        }
        rounds[number] = round
        return asked
    }

    /// - Returns: the question, if this completes it. An answer that is not expected, or comes from another hub than
    ///   the one asked, is ignored.
    mutating func receiveAnswer(_ id: UInt64, by hub: HubIdentity, with body: [UInt8]?) -> Finished? {
        guard open[id]?.hub == hub else { return nil }
        return closeQuestion(id, with: body)
    }

    /// Ends the questions whose deadlines have passed.
    mutating func expireQuestions(at now: Int64) -> [Finished] {
        let over = rounds.filter { $0.value.deadline <= now }.flatMap(\.value.open)
        return over.sorted().compactMap { closeQuestion($0, with: nil) }
    }

    /// A hub is gone and answers no more.
    mutating func endQuestions(_ hub: HubIdentity) -> [Finished] {
        open.filter { $0.value.hub == hub }.keys.sorted().compactMap { closeQuestion($0, with: nil) }
    }

    /// The link is away, so no answer can arrive.
    mutating func endAll() -> [Finished] { open.keys.sorted().compactMap { closeQuestion($0, with: nil) } }

    private mutating func closeQuestion(_ id: UInt64, with body: [UInt8]?) -> Finished? {
        guard let (hub, number) = open.removeValue(forKey: id) else { return nil }
        rounds[number]?.open.remove(id)
        rounds[number]?.answers.append(PeerAnswer(hub: hub.name, body: body))
        guard let round = rounds[number], round.open.isEmpty else { return nil }
        rounds[number] = nil
        return Finished(asker: round.asker, answers: round.answers)
    }
}
