/// What came of an `idle` test.
struct IdleReport {
    let sockets: Int
    let join: Usage.Cost
    let growth: [(name: String, kilobytes: Double)]
    let idle: Usage.Cost
    let heldGrowth: [(name: String, kilobytes: Double)]
    let closedSockets: Int

    private struct Line {
        let name: String
        let joinMicroseconds, kilobytes, heldKilobytes, idlePercent: Double
    }

    private var lines: [Line] {
        join.processes.indices.map { index in
            Line(
                name: join.processes[index].name,
                joinMicroseconds: join.processes[index].microseconds / Double(sockets),
                kilobytes: growth[index].kilobytes / Double(sockets),
                heldKilobytes: heldGrowth[index].kilobytes / Double(sockets),
                idlePercent: idle.processes[index].microseconds / idle.seconds / 1e4)
        }
    }

    var text: String {
        var text = "\(sockets) sockets joined in \(Decimal.text(join.seconds - 0.5, digits: 2)) s, "
        text += "held for \(Decimal.text(idle.seconds, digits: 0)) s, \(closedSockets) closed by the hub"
        for line in lines {
            text += "\n\(line.name): \(Decimal.text(line.joinMicroseconds, digits: 1)) µs of CPU per connect and join, "
            text += "\(Decimal.text(line.kilobytes, digits: 2)) KB per socket "
            text += "(\(Decimal.text(line.heldKilobytes, digits: 2)) at the end), "
            text += "idle \(Decimal.text(line.idlePercent, digits: 3)) % of a core"
        }
        return text
    }

    var json: String {
        var result = ResultLine()
        result.add("scenario", "idle")
        result.add("sockets", sockets)
        result.add("closed_sockets", closedSockets)
        for line in lines {
            result.add("\(line.name)_join_us", line.joinMicroseconds, digits: 2)
            result.add("\(line.name)_kb_per_socket", line.kilobytes, digits: 3)
            result.add("\(line.name)_kb_per_socket_held", line.heldKilobytes, digits: 3)
            result.add("\(line.name)_idle_percent", line.idlePercent, digits: 4)
        }
        return result.text
    }
}
