import DurableStreams
import Foundation
import HTTP
import Streams
import Testing

/// Refusals over HTTP, as `docs/errors.md` lists them.
@Suite struct StreamRefusalTests {
    private static func snapshot() throws -> StreamSnapshot {
        StreamSnapshot(
            id: StreamID(1), name: try #require(StreamName("a")),
            configuration: StreamConfiguration(contentType: "text/plain"), end: 77,
            status: .ended(StreamEnding(.complete, at: 0)))
    }

    private static func all() throws -> [StreamRefusal] {
        [
            .notFound, .gone, .otherConfiguration, .ended(try snapshot()),
            .otherGeneration(try snapshot()), .contentType(expected: "text/plain"),
            .emptyBody, .notJSON, .emptyArray, .notUTF8, .staleEpoch(current: 77), .epochMustBeginAtZero,
            .epochTooFar(most: 77),
            .sequenceGap(expected: 77, received: 78), .sequenceRegression, .tooManyProducers,
            .streamTooLarge(limit: 77), .tooMuch(limit: "streams.count"),
            .overShare(limit: "streams.count"), .noRoom, .closeFailed("a detail"),
            .unavailable,
        ]
    }

    /// The page's table `status | message | next action` has a row for each refusal and no other. What varies is `N` or `…`.
    @Test func thePageListsExactlyThese() throws {
        let page = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "docs/errors.md")
        let lines = try String(contentsOf: page, encoding: .utf8).components(separatedBy: "\n")
        let start = try #require(lines.firstIndex(of: "| status | message | next action |"))
        let rows = lines[(start + 2)...].prefix { $0.hasPrefix("|") }
        #expect(try rows.sorted() == Self.all().map(Self.row).sorted())
    }

    private static func row(_ refusal: StreamRefusal) throws -> String {
        let response = StreamResponse.refusalResponse(refusal)
        let body = try #require(
            try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: String], "an object with `error`")
        var message = try #require(body["error"])
        for (sample, sign) in [
            ("77", "N"), ("78", "M"), ("text/plain", "…"), ("a detail", "…"), ("(streams.count)", "(…)"),
        ] {
            message = message.replacingOccurrences(of: sample, with: sign)
        }
        let isPassing = response.headers.contains { $0.name == "retry-after" }
        return "| \(response.status) | \(message) | \(isPassing ? "retry" : "give up") |"
    }

    /// What is counted has a reason each, and whatever is to be tried again says when.
    @Test func whatPassesSaysWhenToComeAgain() throws {
        let passing = try Self.all().filter {
            StreamResponse.refusalResponse($0).headers.contains { $0.name == "retry-after" }
        }
        #expect(Set(passing.map(\.reason)) == [.full, .share, .disk, .unavailable])
        #expect(try Set(Self.all().map(\.reason)).union([.forbidden]) == Set(StreamRefusal.Reason.allCases))
    }
}
