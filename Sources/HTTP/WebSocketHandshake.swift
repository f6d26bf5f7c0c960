/// The HTTP side of a WebSocket's opening handshake (RFC 6455, section 4.2).
package enum WebSocketHandshake {
    /// Whether a request asks for a WebSocket at all. In HTTP/1.0, and with methods other than GET, `Upgrade` means
    /// nothing (RFC 9110, section 7.8; RFC 6455, section 4.1).
    @inlinable
    package static func isAsked(by head: HTTPHead) -> Bool {
        head.method == "GET" && !head.isHTTP10 && head.lists("websocket", in: "upgrade")
    }

    /// The response to an invalid request for a WebSocket; nil if the request is valid.
    package static func refusal(of head: HTTPHead) -> HTTPResponse? {
        guard isAsked(by: head), head.lists("upgrade", in: "connection") else {
            return .error(400, "The header Connection: Upgrade is missing; a proxy in between has to pass it on")
        }
        guard let key = head.field("sec-websocket-key") else {
            return .error(400, "Sec-WebSocket-Key is missing")
        }
        guard isKey(key) else {
            return .error(400, "Sec-WebSocket-Key must be 16 bytes in base 64")
        }
        guard head.field("sec-websocket-version") == "13" else {
            var response = HTTPResponse.error(426, "Sec-WebSocket-Version must be 13")
            response.headers = [("upgrade", "websocket"), ("sec-websocket-version", "13")]
            return response
        }
        guard !head.hasBody else {
            return .error(400, "A request for a WebSocket has no body")
        }
        return nil
    }

    /// The response to a request without an upgrade at the address of a WebSocket.
    package static func sentence(to head: HTTPHead, at address: String) -> HTTPResponse {
        guard head.method == "GET" || head.method == "HEAD" else {
            var response = HTTPResponse.error(405, "This is the address of a WebSocket: connect to it with GET")
            response.headers = [("allow", "GET, HEAD")]
            return response
        }
        var response = HTTPResponse.error(
            426,
            "This is the address of a WebSocket: connect to ws://HOST\(address) (or wss:// with TLS). "
                + "If you did, a proxy in between took the headers Upgrade and Connection away")
        response.headers = [("upgrade", "websocket")]
        return response
    }

    private static func isKey(_ text: String) -> Bool {
        let bytes = text.utf8
        guard bytes.count == 24, text.hasSuffix("==") else { return false }
        return bytes.dropLast(2).allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
                true
            default: false
            }
        }
    }

    /// The head that lws receives for an admitted request, whatever the client sent: nothing for its parser to misread,
    /// and no `Sec-WebSocket-Protocol`, because the hub selects none (RFC 6455, section 4.2.2).
    package static func canonicalHead(key: String) -> [UInt8] {
        Array(
            ("GET / HTTP/1.1\r\nHost: roost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: " + key
                + "\r\nSec-WebSocket-Version: 13\r\n\r\n").utf8)
    }
}
