import FoundationEssentials
import Glibc

/// One end of the line between parent and worker: messages as JSON, each behind its length in four bytes.
struct Link {
    let descriptor: Int32

    func send(_ message: some Encodable) throws {
        let body = try JSONEncoder().encode(message)
        var bytes = withUnsafeBytes(of: UInt32(body.count).littleEndian) { Array($0) }
        bytes += body
        var at = 0
        while at < bytes.count {
            let count = bytes[at...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 || errno == EINTR else { throw LoadFailure.system("Speaking with the other process") }
            at += max(0, count)
        }
    }

    /// The next message; nil when the other end is closed. Blocks until it is whole.
    func receive<Message: Decodable>(_: Message.Type) throws -> Message? {
        guard let head = try bytes(4) else { return nil }
        let count = head.reversed().reduce(0) { $0 << 8 | Int($1) }
        guard let body = try bytes(count) else { return nil }
        return try JSONDecoder().decode(Message.self, from: Data(body))
    }

    private func bytes(_ count: Int) throws -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var at = 0
        while at < count {
            let got = bytes[at...].withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
            if got == 0 { return nil }
            if got < 0 {
                if errno == EINTR { continue }
                if errno == ECONNRESET { return nil }
                throw LoadFailure.system("Listening to the other process")
            }
            at += got
        }
        return bytes
    }
}
