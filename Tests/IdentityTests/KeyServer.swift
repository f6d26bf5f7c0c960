import Glibc
import Synchronization

/// A web server of a few lines that says what a test wants, on 127.0.0.1 and a port of its own.
final class KeyServer: Sendable {
    enum Answer: Sendable {
        case body(String)
        case status(Int)
        case redirect(String)
        /// Accepts, and says nothing until the server is gone.
        case silence
        case noHTTP
        /// A body of so many of them.
        case spaces(Int)
    }

    let port: UInt16
    private let listener: Int32
    private let state: Mutex<(answer: Answer, requests: [String], silent: [Int32])>

    var url: String { "http://127.0.0.1:\(port)/keys" }
    var requests: Int { state.withLock { $0.requests.count } }

    init(_ answer: Answer, port wanted: UInt16 = 0) {
        state = Mutex((answer, [], []))
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var on: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = wanted.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 16) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        precondition(isBound, "the test's web server has no port")
        port = UInt16(bigEndian: address.sin_port)
        var thread = pthread_t()
        let me = Unmanaged.passRetained(self).toOpaque()
        pthread_create(
            &thread, nil,
            {
                Unmanaged<KeyServer>.fromOpaque($0!).takeRetainedValue().serve(); return nil
            }, me)
        pthread_detach(thread)
    }

    func answer(_ answer: Answer) { state.withLock { $0.answer = answer } }

    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        for socket in state.withLock({ $0.silent }) { close(socket) }
    }

    private func serve() {
        while true {
            let socket = accept(listener, nil, nil)
            guard socket >= 0 else { break }
            let answer = state.withLock { state in
                state.requests.append(Self.request(socket))
                return state.answer
            }
            if case .silence = answer {
                state.withLock { $0.silent.append(socket) }
                continue
            }
            let text = Array(Self.text(answer).utf8)
            _ = send(socket, text, text.count, Int32(MSG_NOSIGNAL))
            close(socket)
        }
        close(listener)
    }

    private static func request(_ socket: Int32) -> String {
        var bytes = [UInt8](repeating: 0, count: 8192)
        var length = 0
        while !bytes.prefix(length).ends(with: "\r\n\r\n".utf8), length < bytes.count {
            let count = bytes[length...].withUnsafeMutableBytes { recv(socket, $0.baseAddress, $0.count, 0) }
            guard count > 0 else { break }
            length += count
        }
        return String(decoding: bytes.prefix(length), as: UTF8.self)
    }

    private static func text(_ answer: Answer) -> String {
        switch answer {
        case .body(let body):
            "HTTP/1.1 200 OK\r\ncontent-length: \(body.utf8.count)\r\nconnection: close\r\n\r\n\(body)"
        case .spaces(let count): text(.body(String(repeating: " ", count: count)))
        case .status(let status): "HTTP/1.1 \(status) Oh\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        case .redirect(let url):
            "HTTP/1.1 302 Found\r\nlocation: \(url)\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        case .silence: ""
        case .noHTTP: "what?\r\n"
        }
    }
}

extension Collection<UInt8> where Self: BidirectionalCollection {
    fileprivate func ends(with end: some BidirectionalCollection<UInt8>) -> Bool {
        reversed().starts(with: end.reversed())
    }
}
