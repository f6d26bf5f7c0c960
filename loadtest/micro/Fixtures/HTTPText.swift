/// HTTP requests as clients write them.
enum HTTPText {
    /// A browser's upgrade, with a short token.
    static let upgrade = Array(
        """
        GET /realtime/v1/websocket?apikey=eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYW5vbiJ9.c2lnbmF0dXJl&vsn=2.0.0 HTTP/1.1\r
        Host: hub.example.com\r
        Connection: Upgrade\r
        Pragma: no-cache\r
        Cache-Control: no-cache\r
        User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari\r
        Upgrade: websocket\r
        Origin: https://app.example.com\r
        Sec-WebSocket-Version: 13\r
        Accept-Encoding: gzip, deflate, br, zstd\r
        Accept-Language: de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7\r
        Cookie: theme=dark; session=0b1f3c527a0e4c539f593f6f5a2c8d11\r
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
        Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r
        \r

        """.utf8)

    /// A backend's broadcast, without its body.
    static let post = Array(
        """
        POST /realtime/v1/api/broadcast/room/events/m HTTP/1.1\r
        Host: hub.example.com\r
        Authorization: Bearer \(ClientText.token)\r
        Content-Type: application/json\r
        Content-Length: 256\r
        \r

        """.utf8)

    /// Sixteen chunks of 256 bytes.
    static let chunkedBody = Array(
        (String(repeating: "100\r\n" + String(repeating: "x", count: 256) + "\r\n", count: 16) + "0\r\n\r\n").utf8)
}
