/// Which row a worker inserts when. Tick `i` is row `i / conversations` of its conversation `i % conversations`.
struct RowSchedule: Sendable {
    /// The conversations of this worker.
    let conversations: Int
    let ticks: Schedule
    private let worker: Int
    private let workers: Int
    private let run: UInt32

    /// - Parameter all: the conversations of all workers.
    init(_ plan: LoadPlan, worker: Int, conversations: Int, of all: Int) {
        self.conversations = conversations
        self.worker = worker
        workers = plan.workers
        run = plan.run
        ticks = Schedule(
            rate: plan.rate * Double(conversations) / Double(max(1, all)), seconds: plan.warmUp + plan.seconds)
    }

    func conversation(of tick: Int) -> Int { tick % conversations }
    func number(of tick: Int) -> Int { tick / conversations }
    func tick(_ number: Int, in conversation: Int) -> Int { number * conversations + conversation }

    /// How many of a conversation's rows are among the first `count` ticks.
    func rows(in conversation: Int, among count: Int) -> Int {
        (count - conversation + conversations - 1) / conversations
    }

    /// What stamps call a conversation: its number among those of all workers.
    func stream(of conversation: Int) -> Int { conversation * workers + worker }
    func conversation(ofStream stream: Int) -> Int? {
        let conversation = stream / workers
        return stream % workers == worker && conversation < conversations ? conversation : nil
    }

    /// The conversation's id in the database: RUN-0000-4000-8000-N.
    func uuid(of conversation: Int) -> String {
        "\(Hexadecimal.text(UInt64(run), width: 8))-0000-4000-8000-"
            + Hexadecimal.text(UInt64(stream(of: conversation)), width: 12)
    }
}
