import ArgumentParser
import CCurl
import Glibc
import Wire

/// Sequential requests to one resource of the hub, on the calling thread. Requests without a body share a connection.
final class HubTransfer {
    private let url: String
    private let token: String
    private let requests: OpaquePointer

    /// - Parameters:
    ///   - url: the URL of a stream or an API, ending with its path.
    ///   - token: the token to send.
    /// - Throws: `RunFailure` if libcurl cannot start.
    init(url: String, token: String) throws {
        guard let requests = roost_requests_create() else { throw RunFailure("libcurl cannot start.") }
        self.url = url
        self.token = token
        self.requests = requests
    }

    deinit { roost_requests_destroy(requests) }

    /// - Parameters:
    ///   - path: appended to the URL.
    ///   - body: sent as it arrives; nil for none.
    /// - Returns: the response's body.
    /// - Throws: `RunFailure` with the hub's sentence.
    func performRequest(
        _ method: String, _ headers: [String], behind path: String = "", body: ReplyInput? = nil
    ) throws -> [UInt8] {
        let exchange = TransferExchange(body)
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
                            TransferExchange.fromContext(context).readBody(
                                UnsafeMutableRawBufferPointer(start: buffer, count: size))
                        }
                    }
                    asked.write = { context, _, bytes, count in
                        TransferExchange.fromContext(context).appendAnswer(
                            UnsafeRawBufferPointer(start: bytes, count: count))
                        return 0
                    }
                    return roost_transfer(requests, &asked, &problem)
                }
            }
        }
        withExtendedLifetime(exchange) {}
        if status < 0 {
            let words = String(decoding: problem.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw RunFailure("The hub cannot be reached (\(words)); is it running, and is --url right?")
        }
        guard status < 400 else { throw RunFailure(exchange.errorSentence(status), .refused) }
        return exchange.answer
    }

    /// A header of the last response; nil if it had none of that name.
    func headerValue(_ name: String) -> String? { roost_answer_header(requests, name).map { String(cString: $0) } }
}

/// The data that libcurl's callbacks send and receive for one request. Confined to the thread that performs it.
private final class TransferExchange {
    private var body: ReplyInput?
    private(set) var answer: [UInt8] = []

    init(_ body: ReplyInput?) { self.body = body }

    static func fromContext(_ context: UnsafeMutableRawPointer?) -> TransferExchange {
        guard let context else { preconditionFailure("libcurl lost what it was given") }
        return Unmanaged<TransferExchange>.fromOpaque(context).takeUnretainedValue()
    }

    func readBody(_ buffer: UnsafeMutableRawBufferPointer) -> Int { body?.readBytes(into: buffer) ?? 0 }

    func appendAnswer(_ bytes: UnsafeRawBufferPointer) { answer += bytes }

    /// The hub's own message, if it sent one.
    func errorSentence(_ status: Int) -> String {
        var words: String?
        do {
            let json = try JSON(parsing: answer)
            words = (json["error"] ?? json["message"])?.string
        } catch { words = nil }
        let sentence = words ?? "The hub answered \(status)"
        return sentence.hasSuffix(".") ? sentence : sentence + "."
    }
}
