/// What the fuzzer of requests and of rows begins with.
extension FuzzTarget {
    var requests: [String] {
        switch self {
        case .broadcast:
            [
                request(
                    "POST /api/broadcast",
                    body:
                        #"{"messages":[{"topic":"a","event":"e","payload":{"a":[1]},"private":true,"id":"7"},{"topic":"b","event":"typing","payload":{"typing":true}}]}"#
                ),
                request("POST /api/broadcast/a/events/e?private=1", "Content-Type: application/json", body: "{}"),
                request(
                    "POST /realtime/v1/api/broadcast/a%20/b/events/e", "Content-Type: application/octet-stream",
                    body: "\u{1}x"),
                request("GET /api/broadcast/a/events"), request("GET /api/broadcast/%CC%81a/events/e"),
            ]
        case .push:
            [
                request(
                    "POST /api/devices",
                    body:
                        #"{"token":"00112233445566778899aabbccddeeff","kind":"start","attributesType":"A","environment":"sandbox","bundleId":"com.a","replaces":"00112233445566778899aabbccddee00"}"#
                ),
                request("DELETE /api/devices?token=00112233445566778899aabbccddeeff"),
                request(
                    "POST /api/live-activity/register",
                    body:
                        #"{"activityId":"1","activityPushToken":"00112233445566778899aabbccddeeff","conversationId":"c"}"#
                ),
                request("DELETE /api/live-activity/registrations/1"),
                request(
                    "POST /api/live-activity/update",
                    body:
                        #"{"activityId":"1","contentState":{"a":1},"event":"end","timestamp":1700000000,"alert":{"title":"t","body":{"loc-key":"k","loc-args":[]}},"dismissalDate":9223372036854775807}"#
                ),
                request(
                    "POST /api/live-activity/start",
                    body:
                        #"{"userId":"u","attributesType":"A","attributes":{},"contentState":{},"alert":{"title":"t","body":"b"},"inputPushToken":1}"#
                ),
                request(
                    "POST /api/live-activity/broadcast",
                    body: #"{"channelId":"c","contentState":{},"event":"update","timestamp":-9223372036854775808}"#),
                request(
                    "POST /api/notify",
                    body:
                        #"{"id":"1","userIds":["u","é"],"title":"t","body":"b","data":{"a":{}},"badge":1,"sound":"","relevanceScore":0.5,"collapseId":"c","when":"unseen"}"#
                ),
                request(
                    "POST /api/notify",
                    body: #"{"audience":{"table":"public.messages","record":{"conversation_id":"a"}},"title":"t"}"#),
            ]
        case .backend:
            [
                request("GET /api/channels?prefix=a&limit=5&cursor=AXJlYWx0aW1lOmE"),
                request("GET /api/channels/a%2Fb/presence?private=true&cursor=cgBr"),
                request(
                    "POST /api/users/u/unsubscribe", body: #"{"topic":"a","private":false,"seconds":60}"#),
                request(
                    "GET /api/stats",
                    body:
                        #"{"ask":"channels","prefix":"","limit":5,"after":{"topic":"realtime:a","private":true}}"#),
                request(
                    "GET /api/stats",
                    body:
                        "{\"ask\":\"user\",\"user\":\"u\"}\n{\"user\":{\"online\":true,\"count\":1,\"connections\":[{\"id\":\"1\",\"seconds\":5,\"channels\":[]}]}}\n{\"count\":1}"
                ),
            ]
        case .fields:
            [
                request(
                    "GET /socket/websocket?apikey=a&token=b", "X-Forwarded-For: 192.0.2.1:5, [2001:db8::1]:9, 10.0.0.1",
                    "Cookie: t=abc; ä=b", "Origin: https://a.web.example:443", "Sec-Fetch-Site: same-origin",
                    "Authorization: Bearer sb_x", "x-api-key: k"),
                request(
                    "OPTIONS /api/sse", "Origin: https://app.example", "Access-Control-Request-Headers: traceparent, a"),
                request(
                    "GET /socket/websocket", "Upgrade: websocket", "Connection: keep-alive, Upgrade",
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"),
            ]
        default:
            [
                request("GET /reply?conversation=%C3%A9", "Last-Event-ID: 1-6"),
                request("GET /a?b=1&c=2&last_event_id=1-3"), request("GET /events?id=a"),
                request("GET /streams/a/b?live=events&event=type"),
                request("GET /streams/a?offset=0000000000000001_0000000000000002&live=sse&cursor=123"),
                request("GET /streams/a?offset=-1&live=long-poll"),
                request("GET /streams/a?offset=now", "If-None-Match: \"a\", W/\"b\""),
                request("POST /realtime/v1/streams/a/cancel"),
                request("PUT /streams/%CC%81a", "Stream-Expires-At: 2026-01-31T12:00:00Z", "Stream-Closed: true"),
            ]
        }
    }

    private func request(_ line: String, _ fields: String..., body: String = "") -> String {
        let own = ["Host: x", "Authorization: Bearer service_role", "Content-Length: \(body.utf8.count)"]
        return ([line + " HTTP/1.1"] + own + fields).joined(separator: "\r\n") + "\r\n\r\n" + body
    }

    var rows: [[UInt8]] {
        func rows(_ kind: UInt8, _ rows: [String?]...) -> [UInt8] {
            let lines = rows.map { row in
                Array(row.map { $0.map { Array($0.utf8) } ?? [FuzzedRows.null] }.joined(separator: [FuzzedRows.cell]))
            }
            return [kind] + lines.joined(separator: [FuzzedRows.row])
        }
        let (id, token) = ("00112233-4455-6677-8899-aabbccddeeff", "00112233445566778899aabbccddeeff")
        let time = "2026-01-31 12:00:00.5+00"
        let position = "10:20:12,15"
        return [
            rows(0, [id, "3", position, nil], [id, "32", "10:20:", "11:30:"]),
            rows(1, ["r", "realtime:a", "t", "k\\\\", "f", "u", "{\"a\":1}", "active"]),
            rows(
                2,
                [
                    "1", "u", nil, token, "sandbox", "com.a", "c", "hub", "1700000000000", "1700000000000",
                    "1700000000",
                    "5", "{}", "f", "t", "t",
                ]),
            rows(
                3,
                ["m", "u", "taken", "c", "{\"conversation_id\":\"c\",\"unread\":5}", "5", token, "sandbox", "a", "7"]),
            rows(4, [nil, "{1}", nil, nil, "{7,9}", nil], ["1", "{1,2}", "22P02", "no uuid", nil, "k"]),
            rows(
                4,
                ["t", "t", "hub", "t", "s", "t", "t", "t", "f", "true", "a = 1", "f", "[\"a\"]", "[\"a\"]", "{}", nil]),
            // Sums and a range that ended the process.
            rows(0, [id, "9223372036854775807", position, nil]),
            rows(4, ["-9223372036854775808", "{1}", nil, nil, nil, nil], [nil, "{}", nil, nil, "{}", nil]),
            rows(4, ["1", "{99999999999999999999}", nil, nil, nil, nil], [nil, "{}", nil, nil, "{}", nil]),
            rows(4, ["1", "{}", nil, nil, nil, nil]),
            rows(5, ["5", "7", "U", "f", time, time, "{\"id\":1}", "{\"id\":2}"]),
            rows(5, ["0", "3", nil, nil, position, "", "[[\"7\",\"{}\",null],\"9\"]", "{}"]),
            rows(
                5,
                [
                    "6", "7", "M", "f", time, nil,
                    "{\"topic\":\"a\",\"event\":\"e\",\"payload\":{},\"binary_payload\":\"\\\\x00ff\"}",
                ]),
            rows(6, ["5", "7", "D", "f", time, nil, nil, "{\"id\":1,\"x\":2}", "77"]),
            rows(7, ["1", "e", "{}", nil], ["2", nil, nil, "\\x00ff"]),
            rows(7, ["7", "[\"topic\",\"id\",\"a\"]", "v", "\"2026\"", "\"1\""]),
        ]
    }
}
