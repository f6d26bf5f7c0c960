/// The sockets of one worker: a run of numbers.
struct Share: Sendable {
    let worker: Int
    let first: Int
    let count: Int

    init(of worker: Int, _ plan: LoadPlan) {
        self.worker = worker
        first = plan.sockets * worker / plan.workers
        count = plan.sockets * (worker + 1) / plan.workers - first
    }
}
