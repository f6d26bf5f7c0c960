import ArgumentParser
import CCurl
import Glibc
import Wire

/// Requests about one stream, one after the other, on the calling thread.
struct StreamTransfer {
    let url: String
    let token: String

    /// - Parameters:
    ///   - path: what stands behind the stream's.
    ///   - body: is sent as it comes; nil for none.
    ///   - take: the pieces of an answer that is no error; without it the answer is returned.
    /// - Returns: the answer's body.
    /// - Throws: `RunFailure` with the hub's sentence.
    func perform(
        _ method: String, _ headers: [String], behind path: String = "", body: ReplyInput? = nil,
        take: (([UInt8]) -> Bool)? = nil
    ) throws -> [UInt8] {
        let exchange = TransferExchange(body, take)
        let texts = (headers + ["Authorization: Bearer \(token)"]).map { strdup($0) }
        defer { for text in texts { free(text) } }
        var problem = [CChar](repeating: 0, count: Int(ROOST_FETCH_PROBLEM_SIZE))
        let pointers = texts.map { UnsafePointer($0) }
        let status = pointers.withUnsafeBufferPointer { pointers in
            method.withCString { method in
                (url + path).withCString { url in
                    var asked = roost_transfer()
                    asked.method = method
                    asked.url = url
                    asked.headers = pointers.baseAddress
                    asked.header_count = pointers.count
                    asked.context = Unmanaged.passUnretained(exchange).toOpaque()
                    if body != nil {
                        asked.read = { context, buffer, size in
                            TransferExchange.of(context).read(UnsafeMutableRawBufferPointer(start: buffer, count: size))
                        }
                    }
                    asked.write = { context, status, bytes, count in
                        TransferExchange.of(context).write(status, UnsafeRawBufferPointer(start: bytes, count: count))
                    }
                    return roost_transfer(&asked, &problem)
                }
            }
        }
        withExtendedLifetime(exchange) {}
        if status < 0, !exchange.hasGivenUp {
            let words = String(decoding: problem.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw RunFailure("The hub cannot be reached (\(words)); is it running, and is --url right?")
        }
        guard status < 400 else { throw RunFailure(exchange.sentence(status), .refused) }
        return exchange.answer
    }
}

/// What one request sends and gets, as libcurl's callbacks reach it. Confined to the thread that performs it.
private final class TransferExchange {
    private var body: ReplyInput?
    private let take: (([UInt8]) -> Bool)?
    private(set) var answer: [UInt8] = []
    private(set) var hasGivenUp = false

    init(_ body: ReplyInput?, _ take: (([UInt8]) -> Bool)?) {
        self.body = body
        self.take = take
    }

    static func of(_ context: UnsafeMutableRawPointer?) -> TransferExchange {
        guard let context else { preconditionFailure("libcurl lost what it was given") }
        return Unmanaged<TransferExchange>.fromOpaque(context).takeUnretainedValue()
    }

    func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int { body?.read(into: buffer) ?? 0 }

    func write(_ status: Int, _ bytes: UnsafeRawBufferPointer) -> Int32 {
        guard status < 400, let take else {
            answer += bytes
            return 0
        }
        hasGivenUp = !take(Array(bytes))
        return hasGivenUp ? 1 : 0
    }

    /// The hub's own words, where it has some.
    func sentence(_ status: Int) -> String {
        var words: String?
        do {
            let json = try JSON(parsing: answer)
            words = (json["error"] ?? json["message"])?.string
        } catch { words = nil }
        return (words ?? "The hub answered \(status)") + "."
    }
}

/// `roost stream read`: the data events of a stream, on the standard output.
struct StreamPrinter {
    private let client: StreamTransfer
    private let isOnce: Bool

    init(_ client: StreamTransfer, isOnce: Bool) {
        self.client = client
        self.isOnce = isOnce
    }

    func run() throws {
        var offset = "-1"
        while true {
            let (body, next, ending) = try page(from: offset)
            StandardOutput.write(body)
            offset = next ?? offset
            if let ending {
                guard ending == "complete" else { throw RunFailure("The stream ended: \(ending).", .refused) }
                return
            }
            if isOnce, body.isEmpty { return }
        }
    }

    /// What follows behind an offset, as events tell it.
    private func page(from offset: String) throws -> (body: [UInt8], next: String?, ending: String?) {
        var parser = ServerEvents()
        var (next, ending): (String?, String?)
        var isUpToDate = false
        _ = try client.perform("GET", [], behind: "?offset=\(offset)&live=sse") { piece in
            for event in parser.take(piece) {
                guard event.name == "control" else {
                    StandardOutput.write(Array(event.data.utf8))
                    continue
                }
                let control: JSON
                do { control = try JSON(parsing: Array(event.data.utf8)) } catch { continue }
                next = control["streamNextOffset"]?.string
                isUpToDate = control["upToDate"]?.bool == true
                if control["streamClosed"]?.bool == true { ending = control["status"]?.string ?? "complete" }
            }
            return !(isOnce && isUpToDate)
        }
        return ([], next, ending)
    }
}
