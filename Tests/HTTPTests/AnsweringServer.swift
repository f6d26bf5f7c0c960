import HTTP
import Testing

/// A server that answers each request with its own path, and keeps what it is told.
final class AnsweringServer {
    var connection: HTTPConnection
    var second: Int32 = 0
    var bodies: [String] = []
    var paths: [String] = []
    var written = ""
    var isShut = false
    var isClosed = false
    /// What is said to a head by its path; others are let in.
    var refusals: [String: UInt32] = [:]
    /// Paths that are answered later.
    var later: Set<String> = []
    /// Paths whose bodies are taken as they come; they are let in, and go on, when the test says so.
    var piecewise: Set<String> = []
    var pieces: [String] = []
    /// Paths that are answered by an answer that goes on, whose head and end the test writes.
    var streaming: Set<String> = []
    /// The socket takes nothing.
    var isBlocked = false
    var handedOver: [UInt8]?

    var heldBytes: Int { connection.heldBytes }
    var isIdle: Bool { connection.isIdle }
    var wantsInput: Bool { connection.wantsInput }

    init(_ limits: HTTPConnection.Limits = HTTPConnection.Limits()) {
        connection = HTTPConnection(limits: limits, at: 0)
    }

    func receive(_ text: String) { receive(Array(text.utf8)) }

    func receive(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { run($0) }
    }

    func run(_ bytes: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)) {
        var input = bytes
        while true {
            switch connection.advance(&input, at: second) {
            case .wait:
                #expect(input.isEmpty, "what was not taken would be lost")
                if isBlocked || !connection.hasOutput { return }
                written += String(decoding: connection.output, as: UTF8.self)
                connection.sent(connection.output.count, at: second)
            case .judge(let head):
                paths.append(head.path)
                if head.path == "/socket" {
                    handedOver = connection.takeRest(input)
                    return
                }
                if let status = refusals[head.path] {
                    connection.answer(.text(status, head.path), at: second)
                } else {
                    connection.admit(input, inPieces: piecewise.contains(head.path), at: second)
                }
            case .piece(let bytes): pieces.append(String(decoding: bytes, as: UTF8.self))
            case .perform(let body):
                bodies.append(String(decoding: body, as: UTF8.self))
                let path = paths.last ?? ""
                if streaming.contains(path) {
                    let (head, isChunked) = connection.stream(.text(200, ""))
                    written += String(decoding: head, as: UTF8.self) + (isChunked ? "1\r\nx\r\n" : "x")
                } else if !later.contains(path) {
                    answer()
                }
            case .refuse(let response): connection.answer(response, closes: true, at: second)
            case .shutDown: isShut = true
            case .close:
                isClosed = true
                return
            }
        }
    }

    func goOn() {
        connection.goOn()
        run()
    }

    func endStream() {
        connection.endStream(at: second)
        run()
    }

    func answer() {
        connection.answer(.text(200, paths.last ?? ""), at: second)
    }

    func pass(_ seconds: Int32) {
        for _ in 0..<seconds {
            second += 1
            if connection.expire(at: second) { run() }
        }
    }

    /// Status and body of each answer, in order.
    var answers: [String] {
        written.components("HTTP/1.1 ").dropFirst().map { answer in
            let parts = answer.components("\r\n\r\n")
            return "\(answer.prefix(3)) \(parts.dropFirst().first ?? "")"
        }
    }
}

func post(_ path: String, _ body: String = "", _ lines: String = "") -> String {
    let length = body.isEmpty ? "" : "content-length: \(body.utf8.count)\r\n"
    return "POST \(path) HTTP/1.1\r\nhost: x\r\n\(lines)\(length)\r\n\(body)"
}

func get(_ path: String, _ method: String = "GET") -> String {
    "\(method) \(path) HTTP/1.1\r\nhost: x\r\n\r\n"
}

extension String {
    fileprivate func components(_ separator: String) -> [String] {
        var parts: [String] = []
        var rest = self[...]
        while let range = rest.firstRange(of: separator) {
            parts.append(String(rest[..<range.lowerBound]))
            rest = rest[range.upperBound...]
        }
        return parts + [String(rest)]
    }
}
