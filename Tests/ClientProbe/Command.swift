import Foundation

/// One line of standard input.
struct Command: Decodable {
    let `do`: String
    var url: String?
    var tokens: [String]?
    var channel: String?
    var table: String?
    var filter: Int?
    var name: String?
    var text: String?
    var state: String?
    var on: Bool?
    var count: Int?
    var first: Int?
    var producer: String?
    /// Seconds.
    var backoff: Double?
    var pause: Double?
    var active: Double?
    var bufferLimit: Int?
    /// Of a list: the column it is ordered by, descending; how many rows; where it is kept; the port of who writes its drafts.
    var order: String?
    var limit: Int?
    var folder: String?
    var api: UInt16?
    var conversation: UUID?
}
