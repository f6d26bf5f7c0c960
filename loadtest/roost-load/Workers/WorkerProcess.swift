import CLoad
import Glibc

/// What a worker process does from its start to its end.
enum WorkerProcess {
    /// Where the parent's line is.
    static let descriptor: Int32 = 3

    static func run() throws {
        // The parent decides what a Ctrl-C means.
        signal(SIGINT, SIG_IGN)
        signal(SIGPIPE, SIG_IGN)
        roost_exact_timers()
        let link = Link(descriptor: descriptor)
        do {
            guard case .plan(let plan, let worker)? = try link.receive(ParentMessage.self) else { return }
            try run(plan, worker, link)
        } catch let failure as LoadFailure {
            try link.send(WorkerMessage.failed(failure.sentence))
        }
    }

    private static func run(_ plan: LoadPlan, _ worker: Int, _ link: Link) throws {
        let share = Share(of: worker, plan)
        switch plan.scenario {
        case .idle, .fanout, .slow:
            let behaviour = try FanoutBehaviour(plan, worker: worker)
            let slots = FanoutBehaviour.slots(plan, worker: worker)
            // A publisher comes from an address like all others; which does not matter.
            let fleet = try self.fleet(plan, slots) { share.first + $0 }
            try Worker(link, behaviour, fleet, smallBuffers: behaviour.stalledCount).run()
        case .storm:
            try Worker(link, StormBehaviour(plan, worker: worker), fleet(plan, share.count) { share.first + $0 }).run()
        case .presence:
            try Worker(link, PresenceBehaviour(plan, worker: worker), fleet(plan, share.count) { share.first + $0 })
                .run()
        case .chat, .changes, .soak:
            let behaviour = try ConversationBehaviour(plan, worker: worker)
            let numbers = behaviour.roster.numbers
            var fleet = try self.fleet(plan, numbers.count) { numbers[$0] }
            fleet.awaitsSubscription = true
            try Worker(link, behaviour, fleet).run()
        }
    }

    private static func fleet(_ plan: LoadPlan, _ slots: Int, _ number: @escaping (Int) -> Int) throws -> FleetPlan {
        FleetPlan(
            slots: slots, endpoint: try Endpoint(plan.target),
            sources: SourceAddresses(stated: plan.sources, sockets: plan.sockets + plan.publishers), number: number,
            ramp: max(1, plan.ramp / plan.workers), rampRate: plan.rampRate / Double(plan.workers),
            heartbeatSeconds: plan.raw == nil ? plan.heartbeat : 0, heartbeat: plan.dialect.heartbeat,
            takesAnyAnswer: plan.raw != nil)
    }
}
