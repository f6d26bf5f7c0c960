import Foundation
import RoostClient
import Testing

@Suite struct PostgresTimeTests {
    @Test(arguments: [
        ("2026-01-02T03:04:05.678Z", 1_767_323_045.678), ("2026-01-02T03:04:05+00:00", 1_767_323_045),
        ("2026-01-02T05:34:05.5+02:30", 1_767_323_045.5), ("2026-01-01T19:04:05-08:00", 1_767_323_045),
        ("2026-01-02T03:04:05.123456", 1_767_323_045.123456), ("2026-01-02", 1_767_312_000), ("1969-12-31", -86_400),
        ("2024-02-29T00:00:00Z", 1_709_164_800), ("1900-03-01", -2_203_891_200),
    ])
    func times(text: String, seconds: Double) throws {
        let date = try #require(PostgresTime.parseDate(text))
        #expect(abs(date.timeIntervalSince1970 - seconds) < 0.000_001)
    }

    @Test(arguments: [
        "", "infinity", "2026-13-01", "2026-01-02T03:04", "2026-01-02T03:04:05 BC", "x", "2026-01-02T03:04:05.",
    ])
    func others(text: String) {
        #expect(PostgresTime.parseDate(text) == nil)
    }

    @Test func thereAndBack() throws {
        for milliseconds in stride(from: -3_000_000_000_000, through: 4_000_000_000_000, by: 77_777_777_777) {
            let date = Date(timeIntervalSince1970: Double(milliseconds) / 1000)
            let back = try #require(PostgresTime.parseDate(PostgresTime.formatDate(date)))
            #expect(abs(back.timeIntervalSince(date)) < 0.000_5)
        }
    }

    @Test func decoding() throws {
        struct Row: Decodable { let at: Date }
        let row = try JSONDecoder.roost.decode(Row.self, from: Data("{\"at\":\"2026-01-02T03:04:05+00:00\"}".utf8))
        #expect(row.at.timeIntervalSince1970 == 1_767_323_045)
        #expect(throws: DecodingError.self) {
            try JSONDecoder.roost.decode(Row.self, from: Data("{\"at\":\"soon\"}".utf8))
        }
    }
}
