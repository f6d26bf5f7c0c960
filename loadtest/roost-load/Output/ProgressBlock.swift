/// The live lines of a run: what is going on now, in as many columns as there are.
struct ProgressBlock {
    let scenario: String
    let expectedSeconds: Double?
    let sample: RunRecord.Sample
    let errors: Int

    func lines(columns: Int, rows: Int) -> [StyledLine] {
        // The last column stays free: some terminals break the line there.
        let width = max(10, columns - 1)
        var lines = [clock(width)] + flow(figures, width)
        lines += sample.processes.flatMap { flow(cells(of: $0), width) }
        // What scrolls out of sight cannot be written anew.
        return lines.prefix(max(1, rows - 1)).map { $0.cut(to: width) }
    }

    private func clock(_ width: Int) -> StyledLine {
        var line = StyledLine()
        line.add(VisibleText.of(scenario), .strong)
        guard sample.seconds >= 0 else {
            line.add("  connecting and warming up")
            return line
        }
        line.add("  " + Amount.clock(seconds: sample.seconds))
        guard let expectedSeconds, expectedSeconds > 0 else { return line }
        let left = max(0, expectedSeconds - sample.seconds)
        line.add(" of \(Amount.clock(seconds: expectedSeconds)), \(Amount.clock(seconds: left)) left  ")
        let length = min(30, width - line.columns)
        guard length >= 8 else { return line }
        let done = Int(min(1, sample.seconds / expectedSeconds) * Double(length))
        line.add(String(repeating: "━", count: done))
        line.add(String(repeating: "─", count: length - done), .faint)
        return line
    }

    private var figures: [StyledLine] {
        var cells = [
            cell("sockets", Amount.count(sample.sockets)), cell("joined", Amount.count(sample.joined)),
            cell("sent", Amount.count(sample.sent) + "/s"), cell("received", Amount.count(sample.received) + "/s"),
            cell("p50", sample.p50.map(Decimal.duration) ?? "–"), cell("p99", sample.p99.map(Decimal.duration) ?? "–"),
        ]
        cells.append(cell("errors", Amount.count(errors), errors > 0 ? .alarm : .plain))
        return cells
    }

    private func cells(of process: RunRecord.Sample.Process) -> [StyledLine] {
        [
            cell(VisibleText.of(process.name), "CPU " + Amount.percent(process.cpuPercent)),
            cell("memory", Amount.memory(kilobytes: process.memoryKB)),
        ]
    }

    private func cell(_ name: String, _ value: String, _ style: StyledLine.Style = .plain) -> StyledLine {
        var cell = StyledLine()
        cell.add(name + " ", .faint)
        cell.add(value, style)
        return cell
    }

    /// As many cells on a line as it holds; a cell keeps its place while its figure grows a little.
    private func flow(_ cells: [StyledLine], _ width: Int) -> [StyledLine] {
        let slot = 20
        var lines: [StyledLine] = []
        var line = StyledLine()
        for cell in cells {
            if line.columns > 0 {
                let next = (line.columns / slot + 1) * slot
                if next + cell.columns > width {
                    lines.append(line)
                    line = StyledLine()
                } else {
                    line.add(String(repeating: " ", count: next - line.columns))
                }
            }
            line.add(cell)
        }
        return line.columns > 0 ? lines + [line] : lines
    }
}
