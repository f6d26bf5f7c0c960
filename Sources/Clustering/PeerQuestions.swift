import Cluster
import Hub

/// This hub's questions to others that are not answered yet.
///
/// Every question ends: by its answer, its time, the end of the hub that was asked, or that of the link. How many are open is bounded;
/// one too many is answered at once, by nothing. Pure: times are monotonic milliseconds that are passed in. Confined to the thread of
/// the cluster's worker.
struct PeerQuestions {
    typealias Done = @Sendable ([PeerAnswer]) -> Void

    /// Who waits for the answers.
    enum Asker: Sendable {
        case caller(Done)
        /// The worker itself, which makes its copy of a hub's members whole.
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

    /// Questions to one hub each.
    static let mostOpen = 512

    private var rounds: [UInt64: Round] = [:]
    private var open: [UInt64: (hub: HubIdentity, round: UInt64)] = [:]
    private var last: UInt64 = 0

    var count: Int { open.count }
    /// When `expire` is due.
    var deadline: Int64? { rounds.values.lazy.map(\.deadline).min() }

    /// Enters a question.
    ///
    /// - Returns: the number of each hub's, which its answer carries; nil where too many are open.
    mutating func ask(_ hubs: [HubIdentity], until deadline: Int64, for asker: Asker) -> [(
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

    /// - Returns: the question, if it is answered by that. An answer that nobody waits for, or of another hub than was asked, says
    ///   nothing.
    mutating func answered(_ id: UInt64, by hub: HubIdentity, with body: [UInt8]?) -> Finished? {
        guard open[id]?.hub == hub else { return nil }
        return close(id, with: body)
    }

    /// Those whose time is over.
    mutating func expire(at now: Int64) -> [Finished] {
        let over = rounds.filter { $0.value.deadline <= now }.flatMap(\.value.open)
        return over.sorted().compactMap { close($0, with: nil) }
    }

    /// A hub is gone: it answers nothing any more.
    mutating func isGone(_ hub: HubIdentity) -> [Finished] {
        open.filter { $0.value.hub == hub }.keys.sorted().compactMap { close($0, with: nil) }
    }

    /// The link is away: nobody answers.
    mutating func endAll() -> [Finished] { open.keys.sorted().compactMap { close($0, with: nil) } }

    private mutating func close(_ id: UInt64, with body: [UInt8]?) -> Finished? {
        guard let (hub, number) = open.removeValue(forKey: id) else { return nil }
        rounds[number]?.open.remove(id)
        rounds[number]?.answers.append(PeerAnswer(hub: hub.name, body: body))
        guard let round = rounds[number], round.open.isEmpty else { return nil }
        rounds[number] = nil
        return Finished(asker: round.asker, answers: round.answers)
    }
}
