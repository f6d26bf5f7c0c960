/// A run as one page that can be attached, printed and read without a network.
enum HTMLReport {
    static func write(_ record: RunRecord, to path: String) throws {
        try ReportFile(path: path).write(ReportPage(record).markup.source)
    }
}
