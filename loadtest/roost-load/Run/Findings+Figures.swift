/// The single figures of a run.
extension Findings {
    var figures: [RunRecord.Figure] {
        shape + deliveries + scenario + checks + processes + tester
    }

    private var shape: [RunRecord.Figure] {
        var figures = [figure("sockets", plan.sockets, title: "sockets")]
        if plan.scenario.hasConversations {
            let conversations = (0..<plan.workers).reduce(0) { $0 + Roster.conversations(of: $1, plan) }
            figures.append(figure("subscribers", plan.sockets))
            figures.append(figure("conversations", conversations, title: "conversations"))
        } else {
            figures.append(figure("channels", plan.channels, title: "channels"))
        }
        figures.append(figure("connect_seconds", connectSeconds, "s", "until all had joined"))
        return figures
    }

    private var deliveries: [RunRecord.Figure] {
        guard plan.scenario != .idle else { return [] }
        let seconds = max(0.001, measuredSeconds)
        return [
            figure("rate", plan.rate, "/s", plan.rate > 0 ? "rate asked for" : ""),
            figure("sent", atEnd.sent - atStart.sent, title: "messages sent"),
            figure("received", atEnd.received - atStart.received, title: "messages received"),
            figure("received_per_second", received / seconds, "/s", "received in a second"),
        ]
    }

    private var scenario: [RunRecord.Figure] {
        var figures: [RunRecord.Figure] = []
        if has("commits") {
            let last = largest("last_commit_moment").map { ($0 - Double(timing.start)) / 1e9 } ?? 0
            figures += [
                figure("commits", sum("commits"), "", "commits"),
                figure("achieved_rate", sum("commits") / max(last, 0.001), "/s", "commits in a second"),
                figure("early", sum("early"), "", "deliveries before the writer's answer"),
            ]
        }
        if has("stalled_cut") {
            figures += [
                figure("stalled", plan.stalled, title: "sockets that stopped reading"),
                figure("stalled_cut", sum("stalled_cut"), "", "of these cut off meanwhile"),
                figure("stalled_closed_later", sum("stalled_closed_later"), "", "of these closed when they read on"),
                figure("stalled_alive", sum("stalled_alive"), "", "of these alive at the end"),
            ]
            if let after = largest("stalled_cut_after_seconds") {
                figures.append(figure("stalled_cut_after_seconds", after, "s", "until the last of them was cut off"))
            }
        }
        if has("came_back") {
            figures += [
                figure("came_back", sum("came_back"), "", "sockets that came back"),
                figure("attempts", sum("attempts"), "", "attempts to connect"),
                check("away", Int(sum("away")), "sockets that did not come back"),
            ]
            if let last = largest("last_back_moment"), last > 0 {
                figures.append(
                    figure("all_back_seconds", (last - Double(timing.start)) / 1e9, "s", "until the last was back"))
            }
        }
        if has("wrong_states") {
            figures.append(check("wrong_states", Int(sum("wrong_states")), "sockets with a wrong list of members"))
        }
        if let worst = minutes.max() {
            figures.append(figure("p99_worst_minute_us", Double(worst) / 1000, "µs", "p99 of the worst minute"))
        }
        return figures
    }

    private var checks: [RunRecord.Figure] {
        var figures: [RunRecord.Figure] = []
        if plan.scenario != .idle, plan.scenario != .storm, plan.scenario != .presence {
            let count = count
            figures += [
                figure("expected", count.expected, title: "deliveries owed"),
                figure("delivered", count.delivered, title: "deliveries that came"),
                check("lost", count.lost, "lost"),
                check("repeated", count.repeated, "came twice"),
                check("out_of_order", count.outOfOrder, "came out of order"),
                check("wrong", count.wrong, "came to a socket that did not ask"),
            ]
        }
        if has("failed_inserts") {
            figures.append(check("failed_inserts", Int(sum("failed_inserts")), "inserts that failed"))
        }
        let ends = [
            check("closed_sockets", closedSockets, "sockets the server closed"),
            check("refused_joins", refusedSockets, "attempts to join that failed"),
        ]
        // In a storm both are what it is about; that somebody stays away is not.
        return figures
            + ends.map { figure in
                var figure = figure
                figure.isCheck = plan.scenario != .storm
                return figure
            }
    }

    private var processes: [RunRecord.Figure] {
        before.processes.map(\.name).flatMap { name -> [RunRecord.Figure] in
            let sockets = Double(plan.sockets)
            var figures: [RunRecord.Figure] = []
            func add(_ suffix: String, _ value: Double?, _ unit: String, _ title: String) {
                guard let value else { return }
                figures.append(figure("\(name)_\(suffix)", value, unit, "\(name): \(title)"))
            }
            add(
                "join_us", connected.cpu(of: name, since: before).map { $0 / sockets }, "µs", "CPU per connect and join"
            )
            add(
                "kb_per_socket", connected.growth(of: name, since: before).map { $0 / sockets }, "KB",
                "memory per socket")
            add(
                "kb_per_socket_held", held.growth(of: name, since: before).map { $0 / sockets }, "KB",
                "the same at the end")
            let span = to.seconds(since: from)
            if plan.scenario == .idle {
                let idle = held.cpu(of: name, since: from).map { $0 / held.seconds(since: from) / 1e4 }
                add("idle_percent", idle, "%", "CPU while idle, of a core")
            } else {
                let cpu = to.cpu(of: name, since: from)
                add("cpu_percent", cpu.map { $0 / span / 1e4 }, "%", "CPU, of a core")
                add("cpu_us_per_delivery", cpu.map { $0 / received }, "µs", "CPU per message received")
            }
            add("memory_kb", to.of(name)?.residentKilobytes, "KB", "memory at the end")
            if let trend = MemoryTrend(samples, of: name) {
                add("memory_growth_percent", trend.growthPercent, "%", "memory's trend over the second half")
                add("memory_slope_kb_per_minute", trend.slope * 60, "KB/min", "memory's slope there")
            }
            return figures
        }
    }

    private var tester: [RunRecord.Figure] {
        let span = max(0.001, to.seconds(since: from))
        let receiving = atEnd.receiving - atStart.receiving, process = atEnd.process - atStart.process
        let perMessage = figure(
            "tester_receiving_us_per_delivery", receiving / received, "µs", "tester: CPU per message received")
        let share = figure(
            "tester_cpu_percent", process / (from.moment < to.moment ? span : 1) / 1e4, "%", "tester: CPU, of a core")
        return plan.scenario == .idle ? [share] : [perMessage, share]
    }

    private func figure(_ name: String, _ value: Double, _ unit: String = "", _ title: String = "") -> RunRecord.Figure
    {
        RunRecord.Figure(name: name, value: value, unit: unit, title: title)
    }

    private func figure(_ name: String, _ value: Int, title: String = "") -> RunRecord.Figure {
        RunRecord.Figure(name: name, value: Double(value), title: title)
    }

    private func check(_ name: String, _ count: Int, _ title: String) -> RunRecord.Figure {
        RunRecord.Figure(name: name, value: Double(count), title: title, isCheck: true)
    }
}
