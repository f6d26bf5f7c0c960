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
}
