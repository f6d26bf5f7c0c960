/// What came of a `changes` test.
struct ChangesReport {
    let plan: ChangesPlan
    let deliveries: Deliveries
    let expected: Int
    let wallSeconds: Double
    let cost: Usage.Cost
    let failedInserts: Int
    let firstFailure: String?
    let closedSockets: Int

    var commit: Percentiles { Percentiles(deliveries.fromCommit) }
    var schedule: Percentiles { Percentiles(deliveries.fromSchedule) }
    var lost: Int { expected - deliveries.check.received }

    /// Why the test is not passed.
    func misses(_ expectations: [Expectation]) -> [String] {
        var misses: [String] = []
        if lost > 0 { misses.append("\(lost) deliveries were lost") }
        if deliveries.check.repeated > 0 { misses.append("\(deliveries.check.repeated) deliveries came twice") }
        if deliveries.check.outOfOrder > 0 { misses.append("\(deliveries.check.outOfOrder) came out of order") }
        if deliveries.wrong > 0 { misses.append("\(deliveries.wrong) came to a socket that did not ask for them") }
        if let firstFailure { misses.append("\(failedInserts) inserts failed, the first with: \(firstFailure)") }
        if closedSockets > 0 { misses.append("the hub closed \(closedSockets) sockets") }
        return misses + expectations.compactMap { $0.miss(in: commit) }
    }

    private var perDelivery: Double { Double(max(1, deliveries.check.received)) }
    private var committed: Int { plan.total - failedInserts }
    private var achieved: Double { Double(committed) / max(wallSeconds, 0.001) }

    var text: String {
        var lines = [
            "\(plan.subscribers) subscribers of \(plan.conversations) conversations, \(committed) commits at "
                + "\(Decimal.text(achieved, digits: 0)) of \(Decimal.text(plan.rate, digits: 0))/s",
            "commit → client    \(commit.text)",
            "schedule → client  \(schedule.text)",
            "deliveries \(deliveries.check.received) of \(expected): lost \(lost), repeated \(deliveries.check.repeated), "
                + "out of order \(deliveries.check.outOfOrder), wrong \(deliveries.wrong)",
        ]
        for (name, microseconds) in cost.processes {
            lines.append(
                "CPU of \(name): \(Decimal.text(microseconds / cost.seconds / 1e4, digits: 2)) % of a core, "
                    + "\(Decimal.text(microseconds / perDelivery, digits: 2)) µs per delivery")
        }
        lines.append(
            "CPU of the tester: receiving \(Decimal.text(cost.receiving / perDelivery, digits: 2)) µs per delivery, "
                + "all \(Decimal.text(cost.tester / cost.seconds / 1e4, digits: 2)) % of a core")
        return lines.joined(separator: "\n")
    }

    func json(_ misses: [String]) -> String {
        var line = ResultLine()
        line.add("scenario", "changes")
        line.add("subscribers", plan.subscribers)
        line.add("conversations", plan.conversations)
        line.add("rate", plan.rate)
        line.add("achieved_rate", achieved)
        line.add("commits", committed)
        line.add("expected", expected)
        line.add("delivered", deliveries.check.received)
        line.add("lost", lost)
        line.add("repeated", deliveries.check.repeated)
        line.add("out_of_order", deliveries.check.outOfOrder)
        line.add("wrong", deliveries.wrong)
        line.add("early", deliveries.early)
        line.add("closed_sockets", closedSockets)
        commit.write(to: &line, prefix: "commit")
        schedule.write(to: &line, prefix: "schedule")
        for (name, microseconds) in cost.processes {
            line.add("\(name)_cpu_percent", microseconds / cost.seconds / 1e4, digits: 3)
            line.add("\(name)_cpu_us_per_delivery", microseconds / perDelivery, digits: 3)
        }
        line.add("tester_receiving_us_per_delivery", cost.receiving / perDelivery, digits: 3)
        line.add("tester_cpu_percent", cost.tester / cost.seconds / 1e4, digits: 2)
        line.add("misses", misses.joined(separator: "; "))
        return line.text
    }
}
