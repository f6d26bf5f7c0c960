import Foundation
import Testing

@testable import roost_load

@Suite struct OutputJSONTests {
    private func object(_ text: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    @Test func theLineIsFlatAndInMicroseconds() throws {
        let text = JSONReport.line(of: OutputExample.run())
        #expect(!text.contains("\n"))
        let line = try object(text)
        #expect(line["scenario"] as? String == "fanout")
        #expect(line["secret"] as? Double == 3)
        #expect(line["hub_cpu_us_per_delivery"] as? Double == 7.1234)
        #expect(line["commit_count"] as? Int == 1000)
        #expect(line["commit_p50_us"] as? Double == 1000)
        #expect(line["commit_p99.9_us"] as? Double == 8000)
        #expect(line["commit_max_us"] as? Double == 9000)
        #expect(line["passed"] as? Bool == true)
        #expect((line["expectations"] as? [Any])?.isEmpty == true)
    }

    @Test func noValueIsNull() throws {
        var record = OutputExample.run()
        record.latencies = [.init(title: "x", name: "x", count: 0, quantiles: [])]
        record.figures = [.init(name: "unknown", value: .nan)]
        let line = try object(JSONReport.line(of: record))
        #expect(line["x_p99_us"] is NSNull)
        #expect(line["unknown"] is NSNull)
    }

    @Test func aCheckThatFailsFailsTheRun() throws {
        var record = OutputExample.run()
        record.figures.append(.init(name: "repeated", value: 2, title: "repeated", isCheck: true))
        #expect(try object(JSONReport.line(of: record))["passed"] as? Bool == false)
    }

    @Test func everyKeyStandsOnce() throws {
        let text = JSONReport.line(of: OutputExample.broken())
        let line = try object(text)
        for key in ["scenario", "huge", "expectations"] {
            #expect(text.components(separatedBy: "\"\(key)\":").count == 2)
        }
        #expect(line["scenario"] as? String == OutputExample.hostile)
        #expect((line["expectations"] as? [Any])?.count == 1)
    }

    @Test(arguments: [OutputExample.run(), OutputExample.broken(), RunRecord(scenario: "", target: "", startedAt: 0)])
    func theDocumentHasAll(_ record: RunRecord) throws {
        let text = JSONReport.document(of: record)
        let document = try object(text)
        #expect(document["scenario"] as? String == record.scenario)
        #expect((document["samples"] as? [[String: Any]])?.count == record.samples.count)
        #expect((document["latencies"] as? [[String: Any]])?.count == record.latencies.count)
        #expect((document["figures"] as? [[String: Any]])?.count == record.figures.count)
        #expect(document["remarks"] as? [String] == record.remarks)
    }
}
