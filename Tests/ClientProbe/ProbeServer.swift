import Foundation

/// The application's own server, which writes rows: HTTP on 127.0.0.1, a connection for each request.
///
/// By hand, because URLSession on Linux takes a core while it waits for an answer, and stops for ever when a request is
/// cancelled in the moment of its answer (swift-corelibs-foundation issue 5412).
struct ProbeServer: Sendable {
    struct Draft: Codable, Sendable {
        let conversation_id: UUID
        let body: String
    }

    struct Refusal: Error { let status: Int }
    struct Unanswered: Error { let call: String }

    private struct Row: Encodable {
        let conversation_id: UUID
        let body: String
        let local_id: UUID
    }

    private static let timeout = timeval(tv_sec: 3, tv_usec: 0)
    let port: UInt16

    func post(_ draft: Draft, localID: UUID) async throws {
        let body = try JSONEncoder().encode(
            Row(conversation_id: draft.conversation_id, body: draft.body, local_id: localID))
        let head = "POST /messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.count)\r\n\r\n"
        let status = try await withCheckedThrowingContinuation { answer in
            // A thread of its own, because it waits.
            DispatchQueue.global().async { answer.resume(with: Result { try exchange(Data(head.utf8) + body) }) }
        }
        guard status == 200 else { throw Refusal(status: status) }
    }

    /// The status of the answer.
    private func exchange(_ request: Data) throws -> Int {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard socket >= 0 else { throw Unanswered(call: "socket") }
        defer { close(socket) }
        var timeout = Self.timeout
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let isConnected = withUnsafeBytes(of: &address) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { address in
                address.baseAddress.map { connect(socket, $0, socklen_t(bytes.count)) } == 0
            }
        }
        guard isConnected else { throw Unanswered(call: "connect") }
        let sent = request.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        guard sent == request.count else { throw Unanswered(call: "send") }
        var answer = [UInt8](repeating: 0, count: 1_024)
        let count = recv(socket, &answer, answer.count, 0)
        let words = String(decoding: answer.prefix(max(0, count)), as: UTF8.self).split(separator: " ")
        guard words.count > 1, let status = Int(words[1]) else { throw Unanswered(call: "recv") }
        return status
    }
}
