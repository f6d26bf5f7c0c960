/// One scenario's part in a worker. The worker calls these in this order; `act` again and again from `start` to `stop`.
protocol ScenarioBehaviour: FleetBehaviour {
    var meter: Meter { get set }

    /// What has to be there before anybody connects.
    func prepare() throws

    func start(_ timing: Timing, _ fleet: Fleet<Self>) throws

    /// When `act` wants to be called next, by `MonotonicClock`.
    var nextDue: UInt64 { get }

    func act(at now: UInt64, _ fleet: Fleet<Self>) throws

    /// Whether all that was scheduled is done.
    func isFinished(_ fleet: Fleet<Self>) -> Bool

    /// Nothing new begins from now on.
    func stop(_ fleet: Fleet<Self>) throws

    /// Whether what had begun has ended.
    var hasStopped: Bool { get }

    /// By channel, what this worker knows and the others need to judge what they received: how many messages it published there, or
    /// the sum of its members. Those of all workers are added up.
    var channelSums: [UInt64] { get }

    /// - Parameter channelSums: those of all workers, added up.
    func settle(_ channelSums: [UInt64], _ fleet: Fleet<Self>) throws

    /// Whether everything has come that has to.
    func isSettled(_ fleet: Fleet<Self>) -> Bool

    /// Counts what is lost; adds what only this scenario has to say.
    func conclude(_ result: inout WorkerResult, _ fleet: Fleet<Self>)
}

extension ScenarioBehaviour {
    func prepare() throws {}
    func turnEnded() {}
    var hasStopped: Bool { true }
    var channelSums: [UInt64] { [] }
    func settle(_ channelSums: [UInt64], _ fleet: Fleet<Self>) throws {}
    func isSettled(_ fleet: Fleet<Self>) -> Bool { true }
    func conclude(_ result: inout WorkerResult, _ fleet: Fleet<Self>) {}
}
