/// What is drawn: some series against two axes.
struct Plot {
    /// Unique on its page.
    let name: String
    let title: String
    /// For those who do not see it.
    let description: String
    let horizontal: Axis
    let vertical: Axis
    let series: [Series]
    /// What must be known to read it.
    var note = ""
    /// A row of figures for each series, beside its name: the legend.
    let legend: Legend

    struct Legend {
        let columns: [String]
        let rows: [[String]]
    }

    /// What each line comes to while it is measured: connecting and warming up, before second 0, are left out.
    static func summary(of series: [Series], _ text: (Double) -> String) -> Legend {
        Legend(
            columns: ["least", "median", "most", "last"],
            rows: series.map { series in
                let values = series.points.filter { $0.x >= 0 }.compactMap(\.y)
                let sorted = values.sorted()
                guard let least = sorted.first, let most = sorted.last, let last = values.last else {
                    return ["–", "–", "–", "–"]
                }
                return [least, sorted[(sorted.count - 1) / 2], most, last].map(text)
            })
    }
}
